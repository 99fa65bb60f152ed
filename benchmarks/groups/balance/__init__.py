"""Group ``balance``: proposals of load balance on synthetic clusters."""
