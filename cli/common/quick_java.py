"""How JVMs run that end after a minute or two, most of which they would spend on compiling well: tests, the demo."""

from __future__ import annotations

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
