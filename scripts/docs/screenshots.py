"""Pictures of the page for the documentation, of a real move.

``headroom demo --keep --dir DEMO`` writes the tables, ``headroom demo --migration --keep --dir DEMO`` those of the view
*Migration*. ``python -m scripts.docs.screenshots DEMO/headroom.toml AT [VIEW...]`` then opens every view, or some, at a
moment of them in an installed Chromium, and writes ``docs/images/page-VIEW.png`` and ``page-VIEW-dark.png`` beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from benchmarks.groups.dashboard.page_process import chromium, start_page
from headroom.dashboard.address import View

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
_WIDTH, _HEIGHT = 1280, 860


def take(config: Path, at_ms: int, views: Sequence[View] = tuple(View), folder: Path = IMAGES) -> list[Path]:
    """Write pictures of the first screen of views, light and dark, and return the files.

    Args:
        config: settings with the store.
        at_ms: moment that is shown, epoch milliseconds.
        views: the views.
        folder: where the pictures are written.
    """
    process, url = start_page(config)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
            files = []
            for view in views:
                page.goto(f"{url}/{view.value}?{urlencode({'at': at_ms, 'span': 600})}")
                for scheme, ending in (("light", ""), ("dark", "-dark")):
                    page.emulate_media(color_scheme=scheme)
                    files.append(folder / f"page-{view.value}{ending}.png")
                    page.screenshot(path=files[-1])
            browser.close()
            return files
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    for file in take(Path(sys.argv[1]), int(sys.argv[2]), [View(name) for name in sys.argv[3:]] or tuple(View)):
        print(file)
