"""The environment of processes that run engines."""

import os

from ragassay.pipeline.engines.verbosity import VERBOSE, is_verbose
from ragassay.pipeline.engines.vllm_engine import openmp_library
from ragassay.pipeline.engines.weights import cache_folder


def engine_environment() -> dict[str, str]:
    """Return the environment variables of processes that run engines."""
    environment = {"RAGASSAY_HOME": str(cache_folder()), "TOKENIZERS_PARALLELISM": "true"}
    if is_verbose():
        environment[VERBOSE] = os.environ[VERBOSE]
    library = openmp_library()
    if library:
        environment["LD_PRELOAD"] = library
    return environment
