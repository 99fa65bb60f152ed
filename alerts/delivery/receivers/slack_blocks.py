"""Events as Slack blocks within Slack's limits, with user-defined names escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headroom.alerts.delivery.message_fields import Links, commands, figures, reason_text
from headroom.schemas.alerts import AlertEvent, AlertState, Severity
from headroom.schemas.text import printable
from headroom.schemas.text.amounts import clock_text

# Slack's limits: characters of a section, of a field and of the plain text; blocks of a message.
SECTION_MOST = 3000
FIELD_MOST = 2000
TEXT_MOST = 4000
BLOCKS_MOST = 50
# Characters in all blocks of a message together. Slack does not document its limit, and refuses more than some 11,000.
MESSAGE_MOST = 10_000
# A message that is refused nevertheless is shortened down to this.
MESSAGE_LEAST = 2500

_ICONS = {
    Severity.CRITICAL: ":rotating_light:",
    Severity.WARNING: ":warning:",
    Severity.INFO: ":information_source:",
}
_RESOLVED_ICON = ":white_check_mark:"
_FENCE = "```"

Block = dict[str, Any]


def escape_text(text: str, most: int) -> str:
    """Return text without links, mentions or tags, truncated to a number of characters after escaping."""
    whole = _escape(text)
    if len(whole) <= most:
        return whole
    while len(_escape(text)) > most - 1:
        text = text[: -max(1, (len(_escape(text)) - most) // 5)]
    return f"{_escape(text)}…"


def _escape(text: str) -> str:
    # A line break in a name must not start a new line.
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def headline(event: AlertEvent) -> str:
    """Return an event in one line."""
    icon = _RESOLVED_ICON if event.state == AlertState.RESOLVED.value else _ICONS[Severity.of(event.severity)]
    who = escape_text(f"{event.kind}, cluster {event.cluster}, {event.subject}", 1000)
    return f"{icon} *{event.state.upper()}* {event.severity} {who}"


def plain_text(event: AlertEvent) -> str:
    """Return an event as plain text, for notifications and screen readers."""
    return f"{headline(event)}: {escape_text(event.summary, TEXT_MOST - 1500)}"


def alert_blocks(event: AlertEvent, links: Links, mention: str = "", most: int = MESSAGE_MOST) -> list[Block]:
    """Return the message of one alert.

    Args:
        event: event.
        links: links below it.
        mention: mention in Slack's own form; empty for none. A resolved alert has none.
        most: number of characters in all blocks together, at least ``MESSAGE_LEAST``. What does not fit is left out.
    """
    context = _context(event, links)
    if event.state == AlertState.RESOLVED.value:
        return [
            _section(f"{headline(event)}\nIt was: {escape_text(event.summary, min(1800, most // 2 - 200))}"),
            context,
        ]
    first = _section(f"{headline(event)} {mention}".rstrip())
    summary = _section(escape_text(f"{event.summary}.", min(SECTION_MOST, most // 3)))
    hint = _section("More with numbers and commands: `headroom alerts`")
    others = [*_fields(event), *_advice(event)]
    room = most - sum(map(text_length, (first, summary, hint, context)))
    kept = [block for block in others if (room := room - text_length(block)) >= 0]
    return [first, summary, *kept, *([hint] if len(kept) < len(others) else []), context]


def text_length(block: Block) -> int:
    """Return the number of characters of all texts in a block."""
    texts = [*block.get("fields", ()), *block.get("elements", ()), *([block["text"]] if "text" in block else [])]
    return sum(len(text["text"]) for text in texts)


def change_text(event: AlertEvent, mention: str = "") -> str:
    """Return the reply in an alert's thread when it changes, with a mention if it has risen."""
    at = clock_text(event.tick_ms)
    if event.state == AlertState.RESOLVED.value:
        return f"{_RESOLVED_ICON} {escape_text(event.kind, 200)} of {escape_text(event.subject, 500)} resolved at {at}"
    text = "; ".join(f"{name.lower()} {text}" for name, text in figures(event).items())
    icon, summary = _ICONS[Severity.of(event.severity)], escape_text(f"{event.summary}. {text}", SECTION_MOST - 300)
    changed = f"{icon} Changed at {at}: {summary}"
    return f"{changed} {mention}".rstrip()


def digest_blocks(
    events: Sequence[AlertEvent], links: Links, mention: str = "", most: int = MESSAGE_MOST
) -> list[Block]:
    """Return one digest message for many alerts that fire together.

    Args:
        events: first event of each alert.
        links: links below it.
        mention: mention in Slack's own form; empty for none.
        most: number of characters in all blocks together. Alerts that do not fit are counted.
    """
    blocks = [_section(f":rotating_light: *{len(events)} alerts fire at once* {mention}".rstrip())]
    context, lines = _context(events[0], links), [f"• {headline(event)}\n" for event in events]
    room = most - text_length(blocks[0]) - text_length(context) - text_length(_rest_of(len(lines)))
    while lines and len(blocks) < BLOCKS_MOST - 2 and len(lines[0]) <= room:
        text = ""
        while lines and len(lines[0]) <= room and len(text) + len(lines[0]) <= SECTION_MOST:
            room -= len(lines[0])
            text += lines.pop(0)
        blocks.append(_section(text))
    return [*blocks, _rest_of(len(lines)), context]


def _rest_of(count: int) -> Block:
    return _section(f"{f'{count} more; all' if count else 'Each'} with numbers and commands: `headroom alerts`")


def _fields(event: AlertEvent) -> list[Block]:
    # Slack accepts up to ten fields; there are six.
    fields = [f"*{name}*\n{escape_text(text, FIELD_MOST - 100)}" for name, text in figures(event).items()]
    return [{"type": "section", "fields": [_mrkdwn(text) for text in fields]}] if fields else []


def _advice(event: AlertEvent) -> list[Block]:
    blocks = [_section(f"*Do*: {escape_text(reason_text(event), 1000)}")] if reason_text(event) else []
    command = next(iter(commands(event)), "")
    if not command:
        return blocks
    # A command is never truncated, because half of it may do harm. It must not close its own code block either.
    code = f"{_FENCE}{_escape(command)}{_FENCE}"
    fits = len(code) <= SECTION_MOST and _FENCE not in command
    return [*blocks, _section(code if fits else "The command is too long for Slack: `headroom alerts` shows it.")]


def _context(event: AlertEvent, links: Links) -> Block:
    link_texts = [f"<{_escape(url).replace('|', '%7C')}|{name}>" for name, url in links.urls_of(event).items()]
    text = " · ".join([*link_texts, f"id {escape_text(event.alert_id, 100)}", clock_text(event.tick_ms)])
    return {"type": "context", "elements": [_mrkdwn(text)]}


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text}
