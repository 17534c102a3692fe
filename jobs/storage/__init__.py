"""Files on a local disk or in an object store, by path or URI."""
