"""Output of commands that run for long: verdicts and alerts as lines, and the way of all lines to their reader."""
