"""The one error that a user's mistake or surroundings may raise."""

from __future__ import annotations

# What ends a thread or a process on purpose. Any other BaseException is a failure that is told as none, such as a panic
# of the Delta library.
ENDINGS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class HeadroomError(Exception):
    """What went wrong, told as subject, rule and remedy; the command prints it in one line and exits with 1.

    Attributes:
        subject: what it is about, e.g. ``cluster.bootstrap_servers`` or ``broker 3``.
        rule: what was expected and was not so.
        remedy: what the reader can do now.
    """

    def __init__(self, subject: str, rule: str, remedy: str) -> None:
        self.subject = subject
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{subject}: {rule}. {remedy}")
