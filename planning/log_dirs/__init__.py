"""Log directories: moves of replicas between the directories of a broker, their space, time and progress."""
