"""PyTorch's threads spin as long as `import_torch` asks, unless the user sets something else."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = """
import os
from ragassay.pipeline.engines.torch_import import SPIN_COUNT, import_torch
before = os.environ.get(SPIN_COUNT)
assert import_torch(spins=7).tensor([1]).sum() == 1
assert os.environ.get(SPIN_COUNT) == before
"""


@pytest.mark.parametrize(("user", "spins"), [({}, "7"), ({"GOMP_SPINCOUNT": "9"}, "9"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")])
def test_openmp_gets_the_spins_of_the_program_or_the_user(user: dict[str, str], spins: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    # OpenMP prints its settings when it is loaded.
    environment = inherited | user | {"OMP_DISPLAY_ENV": "verbose", "LD_PRELOAD": ""}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr
