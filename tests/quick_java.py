"""How the JVMs of tests run: each for a minute or two, most of which it would spend on compiling well."""

from __future__ import annotations

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
