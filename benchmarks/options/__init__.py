"""Options of groups: what they may be, the command that takes them, and the variables that were there before."""
