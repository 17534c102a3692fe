"""Where and when it runs: command line, configuration, storage, and the Ray plans. Imports pipeline and schemas."""
