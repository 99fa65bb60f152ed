"""Addresses of the page: each key and value is checked, and an address leads to what it was made from."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headroom.dashboard.address import FIRST_MS, LAST_MS, MOST_ROWS, Address, View
from headroom.schemas.keys import Role
from tests.unit.builders.dashboard_store import TICK_MS, DashboardStore
from tests.unit.dashboard.markup import Markup

# 2000-12-31 and 3000-01-01.
BEFORE_2001_MS, YEAR_3000_MS = 978_220_800_000, 32_503_680_000_000

REFUSED = [
    ("rows=1000000", "rows=1000000", "less than or equal to 5000"),
    ("rows=0", "rows=0", "greater than or equal to 1"),
    ("page=0", "page=0", "greater than or equal to 1"),
    ("page=-1", "page=-1", "greater than or equal to 1"),
    ("page=one", "page=one", "valid integer"),
    ("page=", "page=", "valid integer"),
    ("page=100001", "page=100001", "less than or equal to 100000"),
    ("color=red", "color", "not a key of an address. There are: cluster, at, until, span"),
    (f"at={BEFORE_2001_MS}", f"at={BEFORE_2001_MS}", "greater than or equal to 1000000000000"),
    (f"at={YEAR_3000_MS}", f"at={YEAR_3000_MS}", "less than or equal to 7258118400000"),
    ("at=2027-01-15", "at=2027-01-15", "valid integer"),
    ("span=-3600", "span=-3600", "greater than or equal to 60"),
    ("span=59", "span=59", "greater than or equal to 60"),
    ("span=604801", "span=604801", "less than or equal to 604800"),
    ("rate=12,5MB", "rate=12,5MB", "Write 12.5MB: a comma is not a decimal point here"),
    ("rate=fast", "rate=fast", "is not a rate in bytes per second, such as 12500000, 12.5MB or 12MiB/s"),
    ("rate=-1MB", "rate=-1MB", "is not a rate in bytes per second"),
    ("rate=", "rate=", "at least 1 character"),
    ("role=x", "role=x", "'leader' or 'follower'"),
    ("broker=-2", "broker=-2", "greater than or equal to -1"),
    ("broker=2147483648", "broker=2147483648", "less than or equal to 2147483647"),
    ("cluster=", "cluster=", "at least 1 character"),
    ("topic=", "topic=", "at least 1 character"),
    (f"topic={'t' * 301}", "topic=ttt", "at most 300 characters"),
    ("sort=", "sort=", "at least 1 character"),
]


@pytest.mark.parametrize(("query", "named", "rule"), REFUSED, ids=[query[:30] for query, _, _ in REFUSED])
def test_a_value_that_an_address_cannot_have_is_refused_with_its_key_and_the_rule(
    store: DashboardStore, query: str, named: str, rule: str
) -> None:
    answer = store.client().get(f"/api/v1/moves?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(named)
    assert rule in answer.json()["error"]


def test_a_refused_value_is_shortened_and_escaped(store: DashboardStore) -> None:
    error = store.client().get("/api/v1/moves", params={"page": "1\x1b[31m\n" + "x" * 5000}).json()["error"]
    assert error.startswith(r"page=1\x1b[31m x")
    assert len(error) < 200


def test_a_page_of_a_refused_address_says_the_same(store: DashboardStore) -> None:
    answer = store.client().get("/moves?page=0")
    assert answer.status_code == 422
    assert "page=0 is not valid: Input should be greater than or equal to 1." in answer.text


def test_the_bounds_themselves_are_accepted() -> None:
    address = Address(at=LAST_MS, span=7 * 86_400, rows=MOST_ROWS, page=100_000, broker=-1)
    assert Address(at=FIRST_MS, span=60, rows=1, page=1, broker=2**31 - 1).page == 1
    assert (address.paging.page, address.paging.page_rows) == (100_000, MOST_ROWS)


@pytest.mark.parametrize("at_ms", [FIRST_MS, FIRST_MS + 1, LAST_MS - 1, LAST_MS])
def test_every_link_of_a_moment_at_the_ends_of_time_leads_to_a_page(store: DashboardStore, at_ms: int) -> None:
    client = store.client()
    page = Markup(client.get(f"/moves?at={at_ms}").text)
    steps = [f"{a.attributes['href']}" for a in page.all("a") if f"{a.attributes.get('id')}".startswith("by-")]
    (bar,) = page.all("input", id="scrub")
    moments = [f"/moves?at={bar.attributes[key]}000" for key in ("min", "max")]
    assert len(steps) == 6
    assert [client.get(url).status_code for url in (*steps, *moments)] == [200] * 8


def test_an_address_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Address().page = 2


def test_an_address_leaves_defaults_out_and_keeps_the_rest() -> None:
    assert Address().url(View.MOVES) == "/moves"
    address = Address(cluster="a b&c", at=TICK_MS, span=3600, page=3, role=Role.FOLLOWER)
    assert address.url(View.LAG) == "/lag?cluster=a+b%26c&at=1800000000000&role=follower&page=3"
    # A change replaces a key; None, and the default, leave it out.
    assert address.url(View.LAG, page=None, at=None, role=Role.LEADER) == "/lag?cluster=a+b%26c"
    assert address.url("/api/v1/lag/lag.csv", page=1, sort="-broker", cluster=None) == (
        "/api/v1/lag/lag.csv?at=1800000000000&role=follower&sort=-broker"
    )


def test_another_view_keeps_only_cluster_moment_and_range() -> None:
    address = Address(cluster="c", at=TICK_MS, span=900, broker=1, rate="1 MB", topic="t", sort="x", page=2, run="r")
    assert address.of_cluster(View.RUNS) == f"/runs?cluster=c&at={TICK_MS}&span=900"


NAMES = st.none() | st.text(min_size=1, max_size=300).filter(lambda text: text.isprintable())
ADDRESSES = st.builds(
    Address,
    cluster=NAMES,
    at=st.none() | st.integers(FIRST_MS, LAST_MS),
    span=st.integers(60, 604_800),
    broker=st.none() | st.integers(-1, 2**31 - 1),
    role=st.sampled_from(Role),
    run=NAMES,
    rate=st.none() | st.sampled_from(["1", "12 MB", "1.5MiB/s", "0"]),
    topic=NAMES,
    state=NAMES,
    sort=NAMES,
    page=st.integers(1, 100_000),
    rows=st.integers(1, MOST_ROWS),
)


def parsed(url: str) -> Address:
    query: dict[str, Any] = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    return Address(**query)


@given(ADDRESSES, st.sampled_from(View))
def test_an_address_is_read_back_as_it_was_written(address: Address, view: View) -> None:
    url = address.url(view)
    assert urlsplit(url).path == f"/{view.value}"
    assert parsed(url) == address


@given(ADDRESSES, st.integers(1, 100_000))
def test_a_changed_key_is_changed_alone(address: Address, page: int) -> None:
    assert parsed(address.url(View.MOVES, page=page)) == address.model_copy(update={"page": page})
