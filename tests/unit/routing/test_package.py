"""An application installs the routing library with kafka-python alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headroom.routing.clients import SUPPORTED_VERSIONS, require_version
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY

# Packages of the extra, by the names that they are imported by. kafka-python imports crc32c itself.
INSTALLED = {"headroom", "kafka", "crc32c", "_crc32c"}


def test_it_loads_nothing_but_kafka_python_and_the_standard_library() -> None:
    code = (
        "import sys\n"
        "import kafka, kafka.admin\n"
        "known = set(sys.modules)\n"
        "import headroom.routing, headroom.routing.agreement\n"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - known} - set(sys.stdlib_module_names)))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('headroom.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    packages, modules = done.stdout.splitlines()
    assert set(packages.split()) <= INSTALLED
    layers = {module.split(".")[1] for module in modules.split()}
    assert layers == {"routing", "planning", "schemas"}


def test_the_extra_names_what_it_needs() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    extra = re.search(r"^routing = \[(.*?)\]", text, re.MULTILINE)
    kafka = re.search(r'"(kafka-python==[^"]+)"', text)
    assert extra is not None
    assert kafka is not None
    assert re.findall(r'"([^"]+)"', extra.group(1)) == ["crc32c", kafka.group(1)]
    assert kafka.group(1).split("==")[1].startswith(SUPPORTED_VERSIONS)


def test_it_refuses_versions_for_which_it_was_not_tested() -> None:
    require_version("3.0.12")
    for version in ("2.2.0", "3.1.0", "30.0.1"):
        with pytest.raises(HeadroomError, match=re.escape(version)):
            require_version(version)


def test_the_page_names_the_versions() -> None:
    page = (Path(REPOSITORY) / "docs" / "migration.md").read_text(encoding="utf-8")
    assert all(f"{version}x" in page for version in SUPPORTED_VERSIONS)
