"""Settings from files and the environment, validated; `headroom init`."""
