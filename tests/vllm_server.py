"""vLLM's own server with the embedded SLM, started once for all tests that need it."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(scope="session")
def vllm_server(embedded: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Callable[[], None]]]:
    """Address of vLLM's own server with the embedded SLM, and a function that waits until it is ready.

    It uses float32, because in bfloat16 vLLM and transformers differ by 0.025 here.
    """
    from tests.conftest import free_port

    port, folder = free_port(), tmp_path_factory.mktemp("server")
    log = folder / "server.log"
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", embedded, "--served-model-name", "slm"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "4096", "--max-num-seqs", "8"]
    command += ["--dtype", "float32", "--block-size", "32", "--enforce-eager"]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    settings["TORCH_COMPILE_DISABLE"] = "1"  # it would compile an unused part, see vllm_engine.label_logprobs
    process = subprocess.Popen(
        command,
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        env={**os.environ, **settings, "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"},
        cwd=folder,
        start_new_session=True,
    )

    def wait() -> None:
        deadline = time.monotonic() + 240
        while True:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.2)
            finally:
                connection.close()

    yield f"http://127.0.0.1:{port}/v1", wait
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its engine is in the same session
        process.wait(timeout=15)
