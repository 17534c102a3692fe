"""Run stages in Ray workers, count their work and supervise them."""
