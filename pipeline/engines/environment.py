"""The environment of processes that run engines."""

import os

from ragassay.pipeline.engines.verbosity import VERBOSE, is_verbose
from ragassay.pipeline.engines.vllm_engine import openmp_library
from ragassay.pipeline.engines.weights import cache_folder


def engine_environment(*, with_intel_openmp: bool = True) -> dict[str, str]:
    """Return the environment variables of processes that run engines.

    Args:
        with_intel_openmp: Whether to preload Intel's OpenMP, if installed.
    """
    environment = {"RAGASSAY_HOME": str(cache_folder()), "TOKENIZERS_PARALLELISM": "true"}
    if is_verbose():
        environment[VERBOSE] = os.environ[VERBOSE]
    library = openmp_library() if with_intel_openmp else None
    if library:
        environment["LD_PRELOAD"] = library
    return environment
