"""Group `precision`: injected faults, and the alerts of Headroom and of stock rules about them."""
