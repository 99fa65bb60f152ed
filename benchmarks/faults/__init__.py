"""Context of the faults of group `outages`: brokers, proxies, disks, clocks."""
