"""A live move under scripted faults of processes, brokers, networks, disks, the ticks topic, clocks and messages."""
