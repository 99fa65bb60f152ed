"""The list of rules: one for each alert kind, in a file with the kind's name."""

from __future__ import annotations

import pytest

from headroom.alerts.rules.catalogue import RULES
from headroom.alerts.rules.rule import Rule
from headroom.schemas.alerts import AlertKind


def test_every_kind_has_exactly_one_rule() -> None:
    assert sorted(rule.kind.value for rule in RULES) == sorted(kind.value for kind in AlertKind)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind.value)
def test_a_rule_is_in_the_file_that_has_the_name_of_its_kind(rule: Rule) -> None:
    assert type(rule).__module__.rsplit(".", 1)[-1] == rule.kind.value
    assert type(rule).__name__ == "".join(part.capitalize() for part in rule.kind.value.split("_"))
