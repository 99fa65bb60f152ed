"""Hostile names and texts, for example with terminal escape sequences."""

from __future__ import annotations

# Each would do something if a shell took it for more than a word.
SHELL_NAMES = (
    "a; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "a && touch pwned",
    "a | touch pwned",
    "a > pwned",
    "it's; touch pwned; '",
    '"; touch pwned; "',
    "--help",
    "*",
    "$HOME ${PATH} !! \\",
    # Each of these begins a line of its own where it is printed as it is.
    "a\ntouch pwned",
    "a\r\ntouch pwned\r\n",
    "a'\n$(touch pwned)\n'",
    "\x1b]0;title\x07\x1b[2J7",
)

CLEAR = "\x1b[2J"
# Clears the screen, forges a line, rings, colours, turns the direction of writing, and breaks the line once more.
ACTING = f"orders{CLEAR}\n[RESOLVED] all is well\r\x07\x9b31m\u202e\u2028"


def acts(text: str) -> list[str]:
    """Return the characters of printed text, but for line breaks, that a terminal would act on."""
    return [character for character in text if character != "\n" and not character.isprintable()]
