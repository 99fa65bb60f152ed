"""Client options from the settings, and passwords that never show."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroom.cluster.connection.admin_connection import connection_options, ticks_options
from headroom.cluster.secrets import secret
from headroom.schemas.config import ClusterSettings, SecurityProtocol, Settings, TicksSettings
from headroom.schemas.errors import HeadroomError


def test_servers_are_cut_at_commas() -> None:
    assert connection_options(ClusterSettings(bootstrap_servers="a:1, b:2,"))["bootstrap_servers"] == ["a:1", "b:2"]


def test_no_servers_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(HeadroomError, match=r"cluster\.bootstrap_servers"):
        connection_options(ClusterSettings())


def test_plaintext_carries_no_secrets() -> None:
    options = connection_options(ClusterSettings(bootstrap_servers="a:1", sasl_password="s3cret"))
    assert not [key for key in options if key.startswith(("sasl", "ssl"))]


def test_sasl_over_tls_takes_the_password_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    settings = ClusterSettings(
        bootstrap_servers="a:1",
        security_protocol=SecurityProtocol.SASL_SSL,
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="headroom",
        sasl_password_file=str(file),
        ssl_cafile="ca.pem",
    )
    options = connection_options(settings)
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("headroom", "s3cret")
    assert (options["security_protocol"], options["ssl_cafile"]) == ("SASL_SSL", "ca.pem")
    assert "s3cret" not in repr(settings)


def test_a_password_in_the_settings_wins_over_its_file() -> None:
    assert secret("given", "/nowhere", "x") == "given"


def test_a_password_file_that_is_missing_or_empty_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HeadroomError, match="cannot read"):
        secret(None, str(tmp_path / "none"), "cluster.sasl_password_file")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(HeadroomError, match="is empty"):
        secret(None, str(tmp_path / "empty"), "cluster.sasl_password_file")


@pytest.mark.parametrize(
    ("file", "reason"),
    [("~nosuchuser/x", "no such user"), ("/dev/zero", "too long"), ("a\0b", "not text"), ("/", "directory")],
)
def test_a_password_file_that_is_none_is_an_error_that_names_it(file: str, reason: str) -> None:
    with pytest.raises(HeadroomError, match=reason) as error:
        secret(None, file, "cluster.sasl_password_file")
    assert error.value.subject == "cluster.sasl_password_file"


def test_ticks_go_to_the_watched_cluster_unless_they_have_one_of_their_own() -> None:
    watched = ClusterSettings(bootstrap_servers="watched:1")
    assert ticks_options(Settings(cluster=watched))["bootstrap_servers"] == ["watched:1"]
    own = Settings(cluster=watched, ticks=TicksSettings(bootstrap_servers="own:1"))
    assert ticks_options(own)["bootstrap_servers"] == ["own:1"]
