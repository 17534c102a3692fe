"""The output folder: manifest, lock, partitions, fingerprint, and its datasets."""
