"""The output folder: its manifest, its lock, its partitions, and what its scores depend on."""
