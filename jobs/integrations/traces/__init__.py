"""Traces, as tracing tools export them: spans joined by trace to rows of logs, which a job then reads as any others."""
