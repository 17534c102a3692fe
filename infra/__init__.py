"""Job files, containers, cluster manifests, schedules and dashboards. Imports nothing."""
