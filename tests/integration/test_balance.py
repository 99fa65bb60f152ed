"""A skewed cluster of real brokers is scored, balanced by the files and commands of a proposal, and scored again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.schemas.errors import HeadroomError
from tests.integration.support import admin_of, create_topic, fill, leaders, wait_until

MB = 1_000_000
STORED, LED, HELD = "stored", "led", "held"
# Broker 1 stores 8 replicas and broker 2 stores 8; brokers 3 and 4 have none.
BEFORE = {number: [1, 2] for number in range(8)}
# Broker 1 leads all, and the others follow: elections alone spread the leads.
FOLLOWED = {number: [1, 2 + number % 3] for number in range(8)}
SIZE_BYTES = 2_000_000


@pytest.fixture(scope="module", autouse=True)
def topics(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, STORED, BEFORE)
    create_topic(cluster, LED, FOLLOWED)
    fill(cluster, STORED, dict.fromkeys(BEFORE, SIZE_BYTES))


@pytest.fixture(scope="module")
def configured(config_file: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        # The default of 256 MB would make a copy of 2 MB look as dear as one of 250.
        patch.setenv("HEADROOM_BALANCE__MOVE_OVERHEAD", "1MB")
        patch.setenv("HEADROOM_REASSIGN__PAUSE_S", "2")
        patch.setenv("HEADROOM_COLLECT__MEASURE_S", "1")
        patch.setenv("HEADROOM_ELECTIONS__PAUSE_S", "0")
        yield config_file


def invoke(*words: str) -> str:
    ran = CliRunner().invoke(headroom, list(words))
    assert ran.exit_code == 0, (words, ran.output, ran.exception)
    return ran.stdout


def balance(config: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke("balance", *words, "--config", str(config), "--format", "json"))
    return found


def replicas(cluster: EmbeddedCluster, topic: str) -> dict[int, list[int]]:
    with admin_of(cluster) as admin:
        found = admin.describe_topics([topic])[0]["partitions"]
    return {int(p["partition_index"]): [int(b) for b in p["replica_nodes"]] for p in found}


def stored_bytes(cluster: EmbeddedCluster, topic: str) -> int:
    with admin_of(cluster) as admin:
        logs = admin.describe_log_dirs()
    topics = [own for broker in logs for folder in broker["log_dirs"] for own in folder["topics"]]
    return sum(int(p["partition_size"]) for own in topics if own["name"] == topic for p in own["partitions"])


def unmet(found: dict[str, Any], goal: str) -> set[int]:
    return {broker["broker"] for broker in found["brokers"] if not broker["goals"][goal]["met"]}


def commands(text: str) -> list[str]:
    """The commands that the proposal prints to carry it out, one for each batch."""
    return re.findall(r"\$ headroom (reassign run \S*batch-\d+\.json .*--execute)$", text, re.MULTILINE)


def test_leads_are_spread_by_elections_that_copy_nothing(
    cluster: EmbeddedCluster, configured: Path, tmp_path: Path
) -> None:
    options = ["--goals", "leaders", "--topics", LED, "--elections-only", "--dir", str(tmp_path / "elect")]
    assert 1 in unmet(balance(configured, "--goals", "leaders"), "leaders")
    text = invoke("balance", "propose", *options, "--config", str(configured))
    proposal = json.loads((tmp_path / "elect" / "proposal.json").read_text())
    assert {batch["copied_bytes"] for batch in proposal["batches"]} == {0}
    before = replicas(cluster, LED)
    assert all("--throttle" not in command for command in commands(text))
    (whole,) = re.findall(r"\$ headroom (balance run .*--execute)$", text, re.MULTILINE)
    ran = json.loads(invoke(*shlex.split(whole), "--yes", "--format", "json"))
    assert (ran["ran"], ran["next_batch"]) == (list(range(1, len(proposal["batches"]) + 1)), None)
    assert ran["outside_after"] < ran["outside_before"]
    after = replicas(cluster, LED)
    assert {number: sorted(r) for number, r in after.items()} == {number: sorted(r) for number, r in before.items()}
    elected = {(a["topic"], a["partition"]): a["to_broker"] for a in proposal["actions"]}
    assert elected
    expected = {number: elected.get((LED, number), before[number][0]) for number in before}
    wait_until(lambda: leaders(cluster, LED) == expected, 30, "elected leaders", lambda: leaders(cluster, LED))
    found = balance(configured, "--goals", "leaders")
    led = {broker["broker"]: broker["loads"]["leaders"]["load"] for broker in found["brokers"]}
    assert led[1] < 16


def test_elections_that_are_not_made_are_named_and_the_same_command_makes_them(
    cluster: EmbeddedCluster, configured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(cluster, HELD, FOLLOWED)
    folder = str(tmp_path / "held")
    options = ("--goals", "leaders", "--topics", HELD, "--elections-only", "--dir", folder)
    run = ["balance", "run", folder, "--config", str(configured), "--execute", "--yes"]
    with PacedProducer(cluster.bootstrap_servers, {(HELD, number): 50_000.0 for number in FOLLOWED}):
        wait_until(lambda: stored_bytes(cluster, HELD) > MB, 30, "a load that is measured")
        proposal = balance(configured, "propose", *options)
        elected = {action["partition"]: action["to_broker"] for action in proposal["actions"]}
        monkeypatch.setenv("HEADROOM_ELECTIONS__CAPACITY_BYTES_PER_S", "1000")
        refused = CliRunner().invoke(headroom, run)
        error = refused.exception
        assert isinstance(error, HeadroomError)
        assert "preferred leaders of held-" in error.rule
        assert "would have to carry more than it can" in error.rule
        assert "All" not in refused.stdout
        assert set(leaders(cluster, HELD).values()) == {1}
        status = invoke("balance", "status", folder, "--config", str(configured))
        assert f"0 of {len(proposal['batches'])} batches are done" in status
        monkeypatch.delenv("HEADROOM_ELECTIONS__CAPACITY_BYTES_PER_S")
        invoke(*run)
    expected = {number: elected.get(number, 1) for number in FOLLOWED}
    assert elected
    assert leaders(cluster, HELD) == expected


def test_the_first_batches_bring_disks_into_their_bands(
    cluster: EmbeddedCluster, configured: Path, tmp_path: Path
) -> None:
    options = ["--goals", "disk", "--topics", STORED, "--throttle", "20MB", "--dir", str(tmp_path / "move")]
    assert unmet(balance(configured, "--goals", "disk"), "disk") == {1, 2, 3, 4}
    text = invoke("balance", "propose", *options, "--config", str(configured))
    proposal = json.loads((tmp_path / "move" / "proposal.json").read_text())
    assert proposal["after"]["brokers_in_band"] == 4
    assert 0 < proposal["batches"][-1]["copied_bytes"] < 32 * MB
    status = ("balance", "status", str(tmp_path / "move"), "--config", str(configured))
    lines = commands(text)
    first = lines[0]
    assert first.split()[2:3] == [str(tmp_path / "move" / "batch-01.json")]
    assert f"Next: $ headroom {first}" in invoke(*status)
    invoke(*shlex.split(first), "--yes")
    # The others, each once what is left has been weighed again.
    run = ("balance", "run", str(tmp_path / "move"), "--config", str(configured))
    if len(lines) > 1:
        assert f"Batch 2 of {len(lines)}: all that is left takes load" in invoke(*run)
        text = invoke(*run, "--execute", "--yes")
        assert f"All {len(lines)} batches are done." in text
    assert f"{len(lines)} of {len(lines)} batches are done." in invoke(*status)
    after = balance(configured, "--goals", "disk")
    assert unmet(after, "disk") == set()
    # The proposal promised these loads; records that Kafka itself writes meanwhile are few.
    for promised, found in zip(proposal["after"]["brokers"], after["brokers"], strict=True):
        assert found["loads"]["disk"]["load"] == pytest.approx(promised["loads"]["disk"]["load"], rel=0.05)
    again = balance(configured, "propose", *options[:4])
    assert again["actions"] == []
    # Another hand moves a partition of the proposal: it is older than the assignment then.
    moved = proposal["batches"][0]["plan"]["partitions"][0]
    file = tmp_path / "other.json"
    other = [broker for broker in (1, 2, 3, 4) if broker not in moved["replicas"]]
    file.write_text(json.dumps({"version": 1, "partitions": [{**moved, "replicas": other}]}))
    invoke("reassign", "run", str(file), "--throttle", "20MB", "--config", str(configured), "--execute", "--yes")
    for command in (status, (*run, "--execute", "--yes")):
        ran = CliRunner().invoke(headroom, list(command))
        assert "is older than the assignment" in str(ran.exception)
