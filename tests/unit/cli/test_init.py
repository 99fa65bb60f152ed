from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headroom.cli.config.init import init
from headroom.cli.config.load import load_settings
from headroom.schemas.errors import HeadroomError


def test_init_writes_a_file_that_loads(tmp_path: Path) -> None:
    file = tmp_path / "headroom.toml"
    arguments = ["--config", str(file), "--name", 'or"ders', "--bootstrap-servers", "a:1,b:2"]
    assert CliRunner().invoke(init, arguments).exit_code == 0
    cluster = load_settings(str(file), {}).cluster
    assert (cluster.name, cluster.bootstrap_servers) == ('or"ders', "a:1,b:2")


def test_init_overwrites_only_when_forced(tmp_path: Path) -> None:
    file = tmp_path / "headroom.toml"
    file.write_text("mine")
    refused = CliRunner().invoke(init, ["--config", str(file)])
    assert isinstance(refused.exception, HeadroomError)
    assert "--force" in refused.exception.remedy
    assert file.read_text() == "mine"
    assert CliRunner().invoke(init, ["--config", str(file), "--force"]).exit_code == 0
    assert "[cluster]" in file.read_text()


@pytest.mark.parametrize("name", ["", " ", "two\nlines"])
def test_init_refuses_a_name_that_no_cluster_may_have(tmp_path: Path, name: str) -> None:
    file = tmp_path / "headroom.toml"
    result = CliRunner().invoke(init, ["--config", str(file), "--name", name])
    assert isinstance(result.exception, HeadroomError)
    assert result.exception.subject == "--name"
    assert not file.exists()


def test_init_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(init, ["--config", str(tmp_path / "no" / "headroom.toml")])
    assert isinstance(result.exception, HeadroomError)
