"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A slow or busy machine is no failure: speed is measured in benchmarks/.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
