"""What ``spark-submit`` starts: ``spark-submit ... submit.py run record --config headroom.toml``.

A file of its own, for ``spark-submit`` wants one; what follows it are the arguments of ``headroom``.
"""

from cli.main import main

if __name__ == "__main__":
    main()
