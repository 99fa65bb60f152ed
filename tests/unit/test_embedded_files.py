"""What the embedded cluster writes before a broker starts."""

from __future__ import annotations

import base64

from cluster.embedded.files import new_cluster_id


def test_no_cluster_id_begins_with_a_dash() -> None:
    # One random id in 64 would: of 2,000 about 31.
    assert [text for text in (new_cluster_id() for _ in range(2000)) if text.startswith("-")] == []


def test_a_cluster_id_is_sixteen_bytes() -> None:
    assert len(base64.urlsafe_b64decode(new_cluster_id() + "==")) == 16
