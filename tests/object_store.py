"""A real S3 server (moto) on a free port."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import free_port


@contextmanager
def serve_bucket(name: str) -> Iterator[tuple[Any, str]]:
    """Start a server with an empty bucket; yield a client of it and its address."""
    import boto3

    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([Path(sys.executable).with_name("moto_server"), "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        for _ in range(100):
            try:
                client.create_bucket(Bucket=name)
                break
            except Exception:
                time.sleep(0.2)
        yield client, endpoint
    finally:
        server.terminate()
        server.wait()
