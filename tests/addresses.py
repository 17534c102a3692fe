"""Record the addresses that the processes of a run look up or connect to."""

import os
from pathlib import Path

import ray.util

from tests.conftest import REPO

HOOK = """
import os, sys

def seen(event, args):
    if event in ("socket.connect", "socket.getaddrinfo") and "SEEN" in os.environ:
        address = args[1] if event == "socket.connect" else args
        if isinstance(address, tuple):
            with open(os.environ["SEEN"], "a") as out:
                out.write(f"{address[0]} {sys.argv[:1]}\\n")

sys.addaudithook(seen)
"""
"""Content of sitecustomize.py: every process of a run logs the addresses that it looks up or connects to."""


def make_watched_env(folder: Path) -> dict[str, str]:
    """Build the environment of a run whose processes log every address in a folder."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(HOOK)
    return {"SEEN": str(folder / "seen"), "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(REPO)])}


def check_addresses(folder: Path) -> None:
    """Check that the processes contacted only this machine."""
    addresses = {line.split()[0] for line in (folder / "seen").read_text().splitlines()}
    assert addresses and addresses <= {"0.0.0.0", "127.0.0.1", "localhost", "::1", ray.util.get_node_ip_address()}
