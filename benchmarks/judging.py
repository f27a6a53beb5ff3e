"""A suite that a model judges, and a provider that takes its time."""

from __future__ import annotations

import importlib.util
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "judged_rag"
#: How long the provider takes for an answer, in seconds, and how many questions are asked at a time.
LATENCY, IN_FLIGHT = 0.2, 8

_CONFIG = """\
version: 1
dataset: data/cases.jsonl
system: {{rag: {{object: app:JudgedRag}}}}
evaluators:
  - {{type: groundedness_judge, provider: openai, model: m, base_url: "http://127.0.0.1:{port}/v1", api_key_env: HOME}}
judges: {{max_in_flight: {in_flight}}}
"""


@contextmanager
def judged_project(folder: Path, cases: int) -> Iterator[Path]:
    """The example judged_rag with `cases` questions and one judge, which answers as long as the block lasts."""
    shutil.copytree(
        EXAMPLE, folder, ignore=shutil.ignore_patterns(".oloproof", "__pycache__", "labels", "release.yaml")
    )
    specification = importlib.util.spec_from_file_location("stand_in", EXAMPLE / "stand_in.py")
    assert specification is not None
    assert specification.loader is not None
    stand_in = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(stand_in)

    class Slow(stand_in.Handler):  # type: ignore[misc,name-defined]
        def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
            time.sleep(LATENCY)
            super().do_POST()

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = _CONFIG.format(port=server.server_address[1], in_flight=IN_FLIGHT)
    (folder / "oloproof.yaml").write_text(config, encoding="utf-8")
    with (folder / "data" / "cases.jsonl").open("w", encoding="utf-8") as file:
        for number in range(cases):
            question = f"When are invoices sent to the billing contact (ticket {number})?"
            case = {"id": f"case_{number}", "input": {"question": question}, "expected": {}}
            file.write(json.dumps(case) + "\n")
    try:
        yield folder
    finally:
        server.shutdown()
        server.server_close()
