"""Bundled data: demo logs, the handbook that they are about, and written test items."""
