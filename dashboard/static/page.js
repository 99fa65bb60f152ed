// Keeps the page up to date: replaces the parts that have changed, writes ages and local times, copies commands.
"use strict";

const body = document.body;
const status = document.getElementById("status");
const zone = document.getElementById("zone");
let said = "";
// This machine's clock may differ from the server's.
let aheadMs = Date.now() - Number(body.dataset.nowMs);
let lastAnswerMs = Date.now();
const [LATE_MS, AGAIN_MS, REST_MS] = [15000, 2000, 150];

function age(ms) {
  const s = Math.max(0, Math.round((Date.now() - aheadMs - ms) / 1000));
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

function isLocal() {
  try { return localStorage.getItem("zone") === "local"; } catch { return false; }
}

// What is the same is not written again: what reads the page out would read it again.
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function writeTimes(root) {
  for (const span of root.querySelectorAll("[data-age-of]")) write(span, age(Number(span.dataset.ageOf)));
  for (const time of root.querySelectorAll("time[data-ms]")) {
    const ms = Number(time.dataset.ms);
    const date = new Date(isLocal() ? ms - new Date(ms).getTimezoneOffset() * 60000 : ms);
    write(time, date.toISOString().slice(0, 19).replace("T", " ") + (isLocal() ? "" : " UTC"));
  }
}

// Has a sentence read out when its words change, not for each figure that goes on. Hidden, it keeps no old one.
function readOut(part, html) {
  // Another broker, or another orders-0, is another sentence.
  const words = html.replace(/(broker \d+|brokers \d+(?:, \d+)*)|(?<![\w-])\d+/gi, "$1");
  part.innerHTML = words === part.dataset.words ? "" : html;
  part.dataset.words = words;
  return true;
}

// Replaces a part, unless somebody is selecting text in it, or presses something; what was open or had the focus stays so.
// A selection that is left behind, as by Copy where there is no clipboard, does not keep a state of then for good.
function replace(part, html, isLate) {
  if (part.id === "said") return readOut(part, html);
  const selection = getSelection();
  if (part.querySelector(":active") || (!isLate && selection && !selection.isCollapsed && part.contains(selection.anchorNode))) return false;
  const open = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
  const scrolled = [...part.querySelectorAll(".scroll")].map((s) => [s.getAttribute("aria-labelledby"), s.scrollLeft, s.scrollTop]);
  const focused = part.contains(document.activeElement) ? pathTo(document.activeElement) : null;
  part.innerHTML = html;
  for (const d of part.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
  for (const [id, left, top] of scrolled) {
    const again = part.querySelector(`.scroll[aria-labelledby="${CSS.escape(id)}"]`);
    if (again) again.scrollTo(left, top);
  }
  const again = focused && part.querySelector(focused);
  if (again) again.focus({ preventScroll: true });
  writeTimes(part);
  writeAnswers(part);
  return true;
}

function pathTo(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const key = ["post", "run", "copy"].find((name) => element.dataset[name]);
  if (key) return `[data-${key}="${CSS.escape(element.dataset[key])}"]`;
  if (element.getAttribute("href")) return `a[href="${CSS.escape(element.getAttribute("href"))}"]`;
  if (element.localName === "summary") return `#${CSS.escape(element.parentElement.id)} > summary`;
  return null;
}

const waiting = new Map();

function show(regions) {
  for (const [name, html] of Object.entries(regions)) waiting.set(name, { sinceMs: Date.now(), ...waiting.get(name), html });
  for (const [name, { html, sinceMs }] of waiting) {
    const part = document.getElementById(name);
    if (!part || replace(part, html, Date.now() - sinceMs > LATE_MS)) waiting.delete(name);
  }
}

let source, scrubbing;

// Browsers open six connections to a host, so a page that nobody sees gives its own up. It goes on from where it was.
function follow() {
  if (source) source.close();
  if (!body.dataset.events || document.hidden) return;
  source = new EventSource(body.dataset.events);
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    lastAnswerMs = Date.now();
    aheadMs = lastAnswerMs - message.now_ms;
    show(message.regions);
    if (message.goes_to) location.assign(message.goes_to);
    else if (message.at) moveTo({ at: message.at });
  };
  source.addEventListener("end", (event) => {
    source.close();
    delete body.dataset.events;
    say(event.data);
  });
  // By itself the browser would connect to the moment at which a replay began, and not at all after a status of 503.
  source.onerror = () => { source.close(); setTimeout(follow, AGAIN_MS); };
}

// The time in which nobody sees the page is not lost.
document.addEventListener("visibilitychange", () => { lastAnswerMs = Date.now(); follow(); });

// The moment that is shown goes on in the address too, so that stopping, reloading or sending it keeps it.
function moveTo(keys) {
  const [shown, events] = [location, body.dataset.events].map((url) => new URL(url, location));
  for (const url of [shown, events]) for (const [key, value] of Object.entries(keys)) url.searchParams.set(key, value);
  history.replaceState(null, "", shown);
  body.dataset.events = events;
  const input = document.querySelector("#controls [name=at]");
  if (input !== document.activeElement) input.value = new Date(keys.at).toISOString().slice(0, 19);
}

// The range stays, whatever moment of it is gone to. What is shown follows once the bar rests.
document.addEventListener("input", (event) => {
  if (event.target.id !== "scrub") return;
  moveTo({ at: event.target.value * 1000, until: event.target.max * 1000 });
  if (source) source.close();
  clearTimeout(scrubbing);
  scrubbing = setTimeout(follow, REST_MS);
});

function tick() {
  writeTimes(document);
  if (zone) write(zone, isLocal() ? "Times: local" : "Times: UTC");
  if (waiting.size) show({});
  const lost = body.dataset.events && !document.hidden && Date.now() - lastAnswerMs > LATE_MS;
  body.classList.toggle("lost", Boolean(lost));
  // Always the same sentence: it is read out when it changes.
  const since = new Date(lastAnswerMs - aheadMs);
  write(status, lost ? `This page has not reached its server since ${since.toISOString().slice(11, 19)} UTC. ` +
    "What it shows is the state of then." : said);
}

// What buttons answer, by their command: a part that is replaced meanwhile has new ones.
const answers = new Map();

function writeAnswers(root) {
  for (const button of root.querySelectorAll("[data-copy]")) write(button, answers.get(button.dataset.copy) || "Copy");
}

async function copy(id) {
  const code = document.getElementById(id);
  if (!code) return;
  try {
    await navigator.clipboard.writeText(code.textContent);
    answers.set(id, "Copied");
  } catch {
    // Without a secure origin there is no clipboard: select it, so that the keyboard copies it.
    getSelection().selectAllChildren(code);
    answers.set(id, "Selected");
  }
  writeAnswers(document);
  setTimeout(() => { answers.delete(id); writeAnswers(document); }, 2000);
}

// A page that the browser has kept has buttons of then.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Addresses are the page's state, so that each can be sent to somebody else.
function go(form) {
  const url = new URL(location);
  url.searchParams.delete("page");
  for (const [name, value] of new FormData(form)) {
    if (name === "at" && value) url.searchParams.set("at", String(Date.parse(`${value}Z`)));
    else if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  location.assign(url);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) copy(button.dataset.copy);
  if (button.dataset.run) post(button, "/actions", { offer: button.dataset.run });
  if (button.dataset.post) post(button, button.dataset.post, {});
  if (button.hasAttribute("data-zone")) {
    try { localStorage.setItem("zone", isLocal() ? "utc" : "local"); } catch { return; }
    tick();
  }
});
document.addEventListener("submit", (event) => {
  event.preventDefault();
  (event.target.dataset.choose ? choose : go)(event.target);
});

// What a form makes is chosen; a file is sent as its text.
async function choose(form) {
  const values = Object.fromEntries(new FormData(form));
  try {
    for (const [name, value] of Object.entries(values)) if (value instanceof File) {
      // A server that refuses it while it is sent looks like one that does not answer.
      if (value.size > Number(form.dataset.mostBytes)) return say(form.dataset.tooLarge);
      values[name] = await value.text();
    }
  } catch {
    // Browsers do not read a file that was changed since it was chosen.
    return say("The file cannot be read any more: choose it again.");
  }
  // Back from what it makes, it has what was filled in; a plan is too long for an address.
  const kept = Object.entries(values).filter(([name, value]) => value && !name.startsWith("plan"));
  history.replaceState(null, "", `?${new URLSearchParams([["cluster", form.dataset.cluster], ...kept])}`);
  post(form.querySelector("[type=submit]"), form.dataset.choose, { cluster: form.dataset.cluster, values });
}

const posted = new Set();

// Chooses a command, says yes to it, or stops it; a second click does nothing.
async function post(button, path, content) {
  // A part that is replaced meanwhile has another button for the same.
  const key = JSON.stringify([path, content]);
  if (posted.has(key)) return;
  posted.add(key);
  button.disabled = true;
  say("");
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(content) });
    const result = await answer.json();
    if (!answer.ok) say(result.error);
    else if (new URL(result.url, location).pathname !== location.pathname) return location.assign(result.url);
  } catch {
    say("The server of this page did not answer.");
  }
  button.disabled = false;
  if (document.activeElement === body) button.focus();
  posted.delete(key);
}

function say(text) { said = text; tick(); }

if (zone) zone.hidden = false;
follow();
tick();
setInterval(tick, 1000);
