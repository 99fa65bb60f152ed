"""Entry point for ``spark-submit``: ``spark-submit ... submit.py run record --config headroom.toml``.

``spark-submit`` needs a file to start; the arguments after it are those of ``headroom``.
"""

from headroom.cli.main import main

if __name__ == "__main__":
    main()
