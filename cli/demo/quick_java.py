"""Java options for JVMs that run for a few minutes at most, as in tests and the demo.

Only the first compiler tier is used: full optimization would take most of such a short run.
"""

from __future__ import annotations

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
