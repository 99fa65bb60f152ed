"""Writes the dashboards in docker/grafana: python scripts/dashboards.py. Their panels are in scripts/grafana."""

from __future__ import annotations

import json
from pathlib import Path

from grafana.balance import balance
from grafana.health import health
from grafana.move import move
from grafana.throttle import throttle

FOLDER = Path(__file__).resolve().parent.parent / "docker" / "grafana" / "dashboards"


def files() -> dict[Path, str]:
    """Return the text of every dashboard by its file."""
    dashboards = (move(), throttle(), balance(), health())
    return {FOLDER / f"{built['uid']}.json": json.dumps(built, indent=2) + "\n" for built in dashboards}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
