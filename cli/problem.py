"""A rule of the settings that does not hold."""

from __future__ import annotations


class Problem(Exception):
    """A value that is not allowed: which key, the rule it breaks, and the remedy. Never the value: it may be secret."""

    def __init__(self, key: tuple[str, str], rule: str, remedy: str = "Put the value right.") -> None:
        self.key = key
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{'.'.join(key)}: {rule}")
