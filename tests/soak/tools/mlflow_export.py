# mypy: ignore-errors
"""Runs in MLflow's own environment: log traces with its SDK to a server on this machine, and export what `search_traces` gives.

python mlflow_export.py STORIES.json OUT_FOLDER PORT
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def main() -> None:
    """Log, wait until all of it is there, export twice."""
    told, out, port = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), sys.argv[3]
    url = f"http://127.0.0.1:{port}"
    here = str(Path(sys.executable).parent)
    command = [f"{here}/mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", "1",
               "--backend-store-uri", f"sqlite:///{out}/mlflow.db", "--artifacts-destination", f"{out}/artifacts"]  # fmt: skip
    env = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (out / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            _wait(url, server)
            _log(told, url)
            _export(out, len(told))
        finally:
            server.terminate()
            server.wait()


def _wait(url, server) -> None:
    for _ in range(600):
        assert server.poll() is None
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError("no answer")


def _log(told, url) -> None:
    import mlflow
    from mlflow.entities import Document, SpanType

    mlflow.set_tracking_uri(url)
    mlflow.set_experiment("soak")

    @mlflow.trace(span_type=SpanType.RETRIEVER)
    def search(question, passages):
        return [Document(page_content=text, id=key, metadata={"doc_uri": f"kb/{key}"}) for key, text in passages]

    @mlflow.trace(span_type=SpanType.CHAT_MODEL)
    def chat(messages, response):
        return {"choices": [{"message": {"role": "assistant", "content": response}}]}

    @mlflow.trace(name="rag", span_type=SpanType.CHAIN)
    def rag(question, one):
        mlflow.update_current_trace(
            metadata={"mlflow.trace.session": one["session"], "mlflow.trace.user": "u"}, client_request_id=one["id"]
        )
        if one["passages"] is not None:
            search(question, one["passages"])
        chat([{"role": "user", "content": question}], one["response"])
        return {"answer": one["response"]} if one["root_says"] else None

    for number, one in enumerate(told, 1):
        rag(one["question"], one)
        if number % 100 == 0:  # its queue drops what it has no room for
            mlflow.flush_trace_async_logging()
    mlflow.flush_trace_async_logging()


def _export(out, count) -> None:
    import mlflow

    for _ in range(30):
        frame = mlflow.search_traces(max_results=10 * count, return_type="pandas")
        if len(frame) >= count:
            break
        time.sleep(1)
    assert len(frame) == count, (len(frame), count)
    (out / "lines").mkdir()
    (out / "parquet").mkdir()
    frame.to_json(out / "lines" / "traces.jsonl", orient="records", lines=True, default_handler=str)
    frame[["trace_id", "trace"]].to_parquet(out / "parquet" / "traces.parquet")


if __name__ == "__main__":
    main()
