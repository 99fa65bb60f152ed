"""The code and its pages use the words of Kafka, Spark and Prometheus (docs/glossary.md), not synonyms of their own."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

FOLDERS = (
    *("schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard", "cli"),
    "tests",
)
# What each was said for, and the field's word: docs/glossary.md.
BANNED = {
    "told": "reported, notified, printed",
    "tell": "report, notify, print",
    "teller": "printer",
    "desk": "engine",
    "lane": "alert partition; delivery queue",
    "side": "broker and role",
    "sides": "brokers and roles",
    "standing": "active",
    "stands": "is active",
    "mark": "suppression",
    "marks": "suppressions",
    "wish": "policy",
    "lacking": "missing; under-replicated",
    "doubt": "stale",
    "doubts": "stale",
    "heat": "mark stale",
    "glance": "read",
    "judge": "evaluate",
    "judged": "evaluated",
    "rehearsal": "warm-up",
    "owed": "undelivered",
    "anew": "again",
}
# Contracts: names of tables, columns, messages and JSON keys; and the field's own use of a word.
CONTRACTS = {
    "ALERT_MARKS",
    "mark_id",
    "mark_ms",
    "lane_messages",
    "sides",
    "judged_ms",
    "last_judged_ms",
    "mark_stale",
    "_mark_moved_stale",
    "mark",
    # Attribute of `planning.migration.Place`.
    "side",
    # A heat map is one.
    "HeatMap",
    "HeatCell",
    "heat_map",
    "heat_maps",
    # Names of libraries and of modules of scripts/.
    "mark_test_complete",
    "server_side",
    "side_by_side",
    "side_effect",
    "_tell_another_python",
    "MARK",
}
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BANNED_IN_PAGES = re.compile(r"\b(told|tells|telling|desk|anew|whom|for ever|nobody|somebody|lane)\b", re.IGNORECASE)
# In texts that people read under stress. Plain instead: "the current batch", "Check ...", "is not valid JSON".
BANNED_IN_TEXTS = re.compile(
    r"\bat hand\b|\bLook at\b|\bPut it right\b|\bthe rights on it\b"
    r"|\b(is|are) no (JSON|list|setting|section|goal|proposal|object|numbers?|text in)\b"
)
QUOTED = re.compile(r"```.*?```|`[^`]*`|\"[^\"\n]*\"|^>.*?$", re.DOTALL | re.MULTILINE)


def words_of(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def tokens_of(path: Path) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)


def identifiers(path: Path) -> set[str]:
    return {token.string for token in tokens_of(path) if token.type == tokenize.NAME}


def strings(path: Path) -> Iterator[tokenize.TokenInfo]:
    """Strings, and from Python 3.12 on also the parts of formatted ones."""
    kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    return (token for token in tokens_of(path) if token.type in kinds)


@pytest.mark.parametrize("folder", FOLDERS)
def test_identifiers_are_words_of_the_field(folder: str) -> None:
    wrong = {
        f"{path.relative_to(REPOSITORY)}: {name}: say {', '.join(BANNED[word] for word in found)}"
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for name in identifiers(path) - CONTRACTS
        if (found := sorted(words_of(name) & BANNED.keys()))
    }
    assert wrong == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_pages_use_words_of_the_field(page: Path) -> None:
    """Quotes are left out: alerts that are active keep the words by which runbooks are found."""
    text = QUOTED.sub("", page.read_text(encoding="utf-8"))
    assert sorted({found.group().lower() for found in BANNED_IN_PAGES.finditer(text)}) == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_texts_of_the_product_are_plain_english(folder: str) -> None:
    """Strings are docstrings, ``--help``, errors, alerts and pages."""
    wrong = {
        f"{path.relative_to(REPOSITORY)}:{token.start[0]}: {words.group()}"
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for token in strings(path)
        if (words := BANNED_IN_TEXTS.search(token.string))
    }
    assert wrong == set()
