"""Progress of a migration: the judgement of one partition at one time, from what was read of both clusters."""
