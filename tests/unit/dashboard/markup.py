"""What a page consists of: its elements with their attributes, and its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_EMPTY = {"meta", "link", "input", "rect", "line", "path", "circle"}


@dataclass
class Element:
    """An element of a page.

    Attributes:
        tag: its name.
        attributes: its attributes; None of one without a value.
        text: all text inside it.
    """

    tag: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Markup(HTMLParser):
    """A parsed page.

    Attributes:
        page: HTML of the page.
        elements: all elements, in order.
    """

    page: str
    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        element = Element(tag, dict(attrs))
        self.elements.append(element)
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element without content."""
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """End an element, and those inside it that were left open."""
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Take a text, which belongs to all open elements."""
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str | None) -> list[Element]:
        """Return the elements of a name with these attributes."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [e for e in self.elements if e.tag == tag and wanted.items() <= e.attributes.items()]

    def texts(self, tag: str, **attributes: str) -> list[str]:
        """Return the texts of these elements, without the space around them."""
        return [element.text.strip() for element in self.all(tag, **attributes)]
