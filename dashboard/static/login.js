// The form for the token, which is in the place of any page that needs one.
"use strict";

// Opens the page in whose place the form is.
function openAsked() {
  location.replace(location.pathname === "/login" ? "/" : location.pathname + location.search);
}

document.querySelector("[data-login]").addEventListener("submit", async (event) => {
  event.preventDefault();
  const content = JSON.stringify({ token: new FormData(event.target).get("token") });
  const answer = await fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: content });
  if (answer.ok) openAsked();
  else document.getElementById("status").textContent = (await answer.json()).error;
});

// A link from elsewhere, such as an alert's, comes without the cookie of a session that is open.
if (location.pathname !== "/login") fetch(location.href).then((answer) => answer.ok && openAsked()).catch(() => {});
