"""The environment of processes that hold engines."""

from ragassay.pipeline.engines.vllm_engine import openmp_library
from ragassay.pipeline.engines.weights import home


def engine_environment() -> dict[str, str]:
    """Environment variables of the processes that hold engines."""
    environment = {"RAGASSAY_HOME": str(home()), "TOKENIZERS_PARALLELISM": "true"}
    library = openmp_library()
    if library:
        environment["LD_PRELOAD"] = library
    return environment
