"""Group `scale`: synthetic ticks of growing clusters."""
