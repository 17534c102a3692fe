"""Where it runs: job files, containers and cluster manifests. Imports nothing."""
