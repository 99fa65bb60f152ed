"""The shipped agent configurations allow all reads, and nothing that changes a broker."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatchcase

import pytest

from headroom.cluster.embedded.agents import EXPORTER_CONFIG, JOLOKIA_POLICY
from headroom.cluster.metrics.exporter.exporter_names import meaning_of
from headroom.cluster.metrics.mbeans import LOAD, TICK, ReadPlan
from headroom.cluster.metrics.rmi.jmx_request import JmxRequest
from headroom.schemas.keys import TopicPartition

NAME = TopicPartition("orders", 0)
# What is read of a broker that leads, follows and has a moving partition, with a fetcher's keys spelled out.
FETCHER = "clientId=ReplicaFetcherThread-0-2"
READS = [
    (
        mbean.replace("ConsumerLag,*", f"ConsumerLag,{FETCHER},topic=t,partition=0").replace(
            "BytesPerSec,*", f"BytesPerSec,{FETCHER},brokerHost=h,brokerPort=1"
        ),
        attribute,
    )
    for mbean, _, attribute in (
        line.partition("\t")
        for scope in (TICK, LOAD)
        for line in JmxRequest(ReadPlan(["orders"], [NAME], [NAME], scope=scope)).text.splitlines()
    )
]
RULES = re.findall(r"- pattern: '(.+)'\n    name: (\S+)", EXPORTER_CONFIG.read_text(encoding="utf-8"))


def covers(pattern: str, mbean: str) -> bool:
    """Return whether a JMX pattern, which may end in ``*``, matches an MBean."""
    return fnmatchcase(mbean, pattern) or mbean == pattern.removesuffix(",*")


@pytest.mark.parametrize(("mbean", "attribute"), READS)
def test_the_exporter_includes_names_and_exports_every_mbean_that_is_read(mbean: str, attribute: str) -> None:
    included = re.findall(r'^  - "(\S+)"$', EXPORTER_CONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    assert [pattern for pattern in included if covers(pattern, mbean)]
    domain, _, keys = mbean.partition(":")
    line = f"{domain}<{keys.replace(',', ', ')}><>{attribute}"
    matches = [(match, name) for pattern, name in RULES if (match := re.search(pattern, line))]
    assert matches, line
    match, name = matches[0]
    # The exporter's groups are $1; what it makes of them has a meaning here.
    meaning = meaning_of(re.sub(r"\$(\d)", lambda group: match[int(group[1])], name))
    assert meaning is not None
    assert meaning.kind == keys.partition(",")[0].removeprefix("type=")


@pytest.mark.parametrize(("mbean", "attribute"), READS)
def test_jolokias_policy_allows_every_mbean_that_is_read(mbean: str, attribute: str) -> None:
    policy = ElementTree.parse(JOLOKIA_POLICY)
    allowed = [(bean.findtext("name") or "", bean.findtext("attribute")) for bean in policy.iterfind("allow/mbean")]
    assert [name for name, of in allowed if covers(name, mbean) and of == attribute]


def test_jolokias_policy_allows_nothing_else() -> None:
    policy = ElementTree.parse(JOLOKIA_POLICY).getroot()
    # A command named there may be used on every MBean.
    assert [command.text for command in policy.iterfind("commands/command")] == ["version"]
    assert [method.text for method in policy.iterfind("http/method")] == ["post"]
    assert {bean.get("mode") for bean in policy.iterfind("allow/mbean/attribute")} == {"read"}
    assert policy.findall("allow/mbean/operation") == []
