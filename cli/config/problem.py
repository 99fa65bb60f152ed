"""Error for an invalid setting, and validation shared by several sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headroom.schemas.quantities import QuantityError

ONE_OF_TWO = "Keep one of the two."


class SettingError(Exception):
    """An invalid setting: its key, the violated rule and the remedy, never the value, which may be a secret."""

    def __init__(self, key: tuple[str, str], rule: str, remedy: str = "Correct the value.") -> None:
        self.key = key
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{'.'.join(key)}: {rule}")


def quantity_errors(
    key: tuple[str, str], text: str, read: Callable[[str], object], before: str = ""
) -> Iterator[SettingError]:
    """Yield an error for a text that is no quantity; an empty one counts as not set.

    Args:
        key: the setting.
        text: its text.
        read: returns the quantity of a text, or raises QuantityError.
        before: what the text is, if the setting has several.
    """
    if text:
        try:
            read(text)
        except QuantityError as error:
            yield SettingError(key, f"{before}{error.rule}", error.remedy)


def duplicate_secrets(section: str, settings: object, *names: str) -> Iterator[SettingError]:
    """Yield an error for every secret of a section that is set both directly and by a file.

    Args:
        section: name of the section.
        settings: settings of the section.
        names: names of the secrets; the file's setting has the suffix ``_file``.
    """
    for name in names:
        if getattr(settings, name) and getattr(settings, f"{name}_file"):
            yield SettingError((section, f"{name}_file"), f"is set beside {section}.{name}", ONE_OF_TWO)
