"""Running a reassignment plan: its journal, and the changes of each step. Pure: the execution is in cluster/."""
