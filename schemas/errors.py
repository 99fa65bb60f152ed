"""The base class of all errors caused by the user's input or environment."""

from __future__ import annotations

# Exceptions that end a thread or a process on purpose. Any other BaseException is a failure in disguise, such as a
# panic of the Delta library.
ENDINGS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class HeadroomError(Exception):
    """An error in three parts: subject, rule and remedy. A command prints it in one line and exits with code 1.

    Attributes:
        subject: affected setting, broker or file, e.g. ``cluster.bootstrap_servers`` or ``broker 3``.
        rule: violated expectation.
        remedy: action for the user.
    """

    def __init__(self, subject: str, rule: str, remedy: str) -> None:
        self.subject = subject
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{subject}: {rule}. {remedy}")
