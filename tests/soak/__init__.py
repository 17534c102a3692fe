"""What takes long: faults injected many times, real servers, realistic exports; `make soak` writes docs/faults.md."""
