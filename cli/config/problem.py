"""A rule of the settings that does not hold, and rules that several sections have."""

from __future__ import annotations

from collections.abc import Iterator

ONE_OF_TWO = "Keep one of the two."


class SettingError(Exception):
    """A value that is not allowed: which key, the rule it breaks, and the remedy. Never the value: it may be secret."""

    def __init__(self, key: tuple[str, str], rule: str, remedy: str = "Put the value right.") -> None:
        self.key = key
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{'.'.join(key)}: {rule}")


def duplicate_secrets(section: str, settings: object, *names: str) -> Iterator[SettingError]:
    """Yield every secret of a section that is given both by itself and by a file.

    Args:
        section: its name.
        settings: its settings.
        names: of the secrets; that of the file ends in ``_file``.
    """
    for name in names:
        if getattr(settings, name) and getattr(settings, f"{name}_file"):
            yield SettingError((section, f"{name}_file"), f"is set beside {section}.{name}", ONE_OF_TWO)
