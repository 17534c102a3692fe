"""A model that fails on purpose: it hangs, dies, or uses too much memory.

It is the tiny model of the other tests, loaded by the real engine with `trust_remote_code`. Each fault is a file that the model
deletes when it fails, so every fault happens as often as there are files.
"""

import json
import shutil
from pathlib import Path
from typing import Any

CODE = """
import ctypes, glob, os, resource, time
from transformers import LlamaConfig, LlamaForCausalLM

def fault(where, folder):
    for path in sorted(glob.glob(os.path.join(folder, where + "-*"))):
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # another replica has it
        kind = os.path.basename(path).split("-")[1]
        if kind == "hang":
            time.sleep(10**6)
        elif kind == "gil":
            ctypes.PyDLL(None).sleep(10**6)
        elif kind == "kill":
            os.kill(os.getpid(), 9)
        elif kind == "limit":
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), resource.RLIM_INFINITY))
            import torch
            torch.ones(1 << 30)
        elif kind == "eat":
            eaten = []
            while True:
                eaten.append(bytearray(os.urandom(1 << 16)) * (1 << 10))
                time.sleep(0.02)
        return


class Faulty(LlamaForCausalLM):
    def __init__(self, config):
        fault("start", config.faults)
        super().__init__(config)

    def forward(self, *args, **kwargs):
        fault("step", self.config.faults)
        return super().forward(*args, **kwargs)
"""


def copy_faulty_model(tiny: str, folder: Path) -> tuple[str, Path]:
    """Copy the tiny model and add the code of the faults.

    Args:
        tiny: Folder of the tiny model.
        folder: Folder for the copy.

    Returns:
        Folder of the copy, and folder of the fault files; see `inject_faults`.
    """
    model, faults = folder / "faulty", folder / "faults"
    shutil.copytree(tiny, model)
    faults.mkdir()
    (model / "faulty.py").write_text(CODE)
    config: dict[str, Any] = json.loads((model / "config.json").read_text())
    config |= {"faults": str(faults), "auto_map": {"AutoModelForCausalLM": "faulty.Faulty"}}
    (model / "config.json").write_text(json.dumps(config))
    return str(model), faults


def inject_faults(faults: Path, where: str, kind: str, times: int) -> None:
    """Make the model fail.

    Args:
        faults: Folder of the fault files.
        where: `start`: while it is loaded; `step`: in a forward pass.
        kind: hang, gil (hang with Python's lock), kill, limit (no memory due to a limit), eat (use all memory of the machine).
        times: Number of faults.
    """
    for number in range(times):
        (faults / f"{where}-{kind}-{number:03}").touch()
