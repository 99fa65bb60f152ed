"""All seeded faults, the quick tiers first."""

from __future__ import annotations

from benchmarks.groups.seeded_faults.integration_faults import INTEGRATION_FAULTS
from benchmarks.groups.seeded_faults.spark_faults import SPARK_FAULTS
from benchmarks.groups.seeded_faults.unit_faults import UNIT_FAULTS

FAULTS = UNIT_FAULTS + SPARK_FAULTS + INTEGRATION_FAULTS
