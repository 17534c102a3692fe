"""Train adapters on a GPU machine that has torch and transformers, but neither this package's environment nor a network.

1. Here: `python -m tests.benchmarks.gpu_training.prepare MIX.parquet OUT --slm S.yaml --watch LOG.parquet …` writes prompts and
   weights as two files.
2. There, from a copy of the repository: `python -m tests.benchmarks.gpu_training.train OUT RESULT …` writes an adapter.
"""
