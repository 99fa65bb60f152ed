"""Where the faults of group `outages` take place: brokers, proxies, disks, clocks."""
