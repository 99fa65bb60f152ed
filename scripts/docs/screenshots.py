"""Pictures of the page for the documentation, of a real move.

``headroom demo --keep --dir DEMO`` writes the tables. ``python -m scripts.docs.screenshots DEMO/headroom.toml AT`` then
opens every view at a moment of them in an installed Chromium, and writes ``docs/images/page-VIEW.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from benchmarks.groups.dashboard.page_process import chromium, start_page
from headroom.dashboard.address import View

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
_WIDTH, _HEIGHT = 1280, 860


def take(config: Path, at_ms: int, folder: Path = IMAGES) -> list[Path]:
    """Write a picture of the first screen of every view, and return the files.

    Args:
        config: settings with the store.
        at_ms: moment that is shown, epoch milliseconds.
        folder: where the pictures are written.
    """
    process, url = start_page(config)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
            files = []
            for view in View:
                page.goto(f"{url}/{view.value}?{urlencode({'at': at_ms, 'span': 600})}")
                files.append(folder / f"page-{view.value}.png")
                page.screenshot(path=files[-1])
            browser.close()
            return files
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    for file in take(Path(sys.argv[1]), int(sys.argv[2])):
        print(file)
