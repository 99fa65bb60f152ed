"""Events as Slack's Block Kit, within its limits, with names that users gave made harmless."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alerts.delivery.message_fields import Links, commands, figures, reason_text
from alerts.text.formatting import clock
from schemas.alerts import AlertEvent, AlertState, Severity
from schemas.text import printable

# Slack's limits: characters of a section, of a field and of the text besides, blocks of a message.
SECTION_MOST = 3000
FIELD_MOST = 2000
TEXT_MOST = 4000
BLOCKS_MOST = 50

_ICONS = {
    Severity.CRITICAL.value: ":rotating_light:",
    Severity.WARNING.value: ":warning:",
    Severity.INFO.value: ":information_source:",
}
_RESOLVED_ICON = ":white_check_mark:"
_FENCE = "```"

Block = dict[str, Any]


def escaped(text: str, most: int) -> str:
    """Return text in which nothing is a link, a mention or a tag, cut to a number of characters as they are sent."""
    whole = _escaped(text)
    if len(whole) <= most:
        return whole
    while len(_escaped(text)) > most - 1:
        text = text[: -max(1, (len(_escaped(text)) - most) // 5)]
    return f"{_escaped(text)}…"


def _escaped(text: str) -> str:
    # A name with a line break in it begins no line of its own.
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def headline(event: AlertEvent) -> str:
    """Return an event in one line."""
    icon = _RESOLVED_ICON if event.state == AlertState.RESOLVED.value else _ICONS[event.severity]
    who = escaped(f"{event.kind}, cluster {event.cluster}, {event.subject}", 1000)
    return f"{icon} *{event.state.upper()}* {event.severity} {who}"


def plain_text(event: AlertEvent) -> str:
    """Return an event for where blocks are not shown: notifications, and readers of screens."""
    return f"{headline(event)}: {escaped(event.summary, TEXT_MOST - 1500)}"


def alert_blocks(event: AlertEvent, links: Links) -> list[Block]:
    """Return the message of one alert as it stands."""
    if event.state == AlertState.RESOLVED.value:
        body = [_section(f"{headline(event)}\nIt was: {escaped(event.summary, 1800)}")]
    else:
        body = [
            _section(headline(event)),
            _section(escaped(f"{event.summary}.", SECTION_MOST)),
            *_fields(event),
            *_advice(event),
        ]
    return [*body, _context(event, links)]


def change_text(event: AlertEvent) -> str:
    """Return what is said in an alert's thread when it changes."""
    at = clock(event.tick_ms)
    if event.state == AlertState.RESOLVED.value:
        return f"{_RESOLVED_ICON} {escaped(event.kind, 200)} of {escaped(event.subject, 500)} resolved at {at}"
    told = "; ".join(f"{name.lower()} {text}" for name, text in figures(event).items())
    return f"{_ICONS[event.severity]} Changed at {at}: {escaped(f'{event.summary}. {told}', SECTION_MOST - 300)}"


def digest_blocks(events: Sequence[AlertEvent], links: Links) -> list[Block]:
    """Return one message for many alerts that fire at once."""
    head = _section(f":rotating_light: *{len(events)} alerts fire at once*")
    blocks, lines = [head], [f"• {headline(event)}" for event in events]
    while lines and len(blocks) < BLOCKS_MOST - 2:
        text = ""
        while lines and len(text) + len(lines[0]) < SECTION_MOST:
            text += f"{lines.pop(0)}\n"
        blocks.append(_section(text))
    rest = f"{len(lines)} more; all" if lines else "Each"
    blocks.append(_section(f"{rest} with numbers and commands: `headroom alerts`"))
    return [*blocks, _context(events[0], links)]


def _fields(event: AlertEvent) -> list[Block]:
    # Slack takes ten fields at most; there are six.
    told = [f"*{name}*\n{escaped(text, FIELD_MOST - 100)}" for name, text in figures(event).items()]
    return [{"type": "section", "fields": [_mrkdwn(text) for text in told]}] if told else []


def _advice(event: AlertEvent) -> list[Block]:
    blocks = [_section(f"*Do*: {escaped(reason_text(event), 1000)}")] if reason_text(event) else []
    command = next(iter(commands(event)), "")
    if not command:
        return blocks
    # A command is never cut: half of one may do harm. Nor may it end its own block.
    code = f"{_FENCE}{_escaped(command)}{_FENCE}"
    fits = len(code) <= SECTION_MOST and _FENCE not in command
    return [*blocks, _section(code if fits else "The command is too long for Slack: `headroom alerts` shows it.")]


def _context(event: AlertEvent, links: Links) -> Block:
    told = [f"<{_url(url)}|{name}>" for name, url in links.filled(event).items()]
    text = " · ".join([*told, f"id {escaped(event.alert_id, 100)}", clock(event.tick_ms)])
    return {"type": "context", "elements": [_mrkdwn(text)]}


def _url(url: str) -> str:
    return _escaped(url).replace("|", "%7C")


def _section(text: str) -> Block:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text}
