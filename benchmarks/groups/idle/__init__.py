"""Group ``idle``: cores, memory and files of a watch on a cluster where nothing happens."""
