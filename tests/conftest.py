"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A slow or busy machine is no failure: speed is measured in benchmarks/. The examples are the same in every run, so
# that a change fails on what it changed; others are looked for with --hypothesis-profile=explore.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("same")
