"""Tests of infra/: each file is read as its consumer reads it."""
