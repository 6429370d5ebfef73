"""The answering server hands out what is written into its folder, and reports what goes wrong."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answering_server import AnsweringServer

ASKED = {"model": "m", "messages": [{"role": "user", "content": "How many legs has a heron?"}]}


@contextmanager
def serving(folder: Path, timeout_s: float = 30.0) -> Iterator[AnsweringServer]:
    server = AnsweringServer(folder, timeout_s=timeout_s)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


@contextmanager
def answerer(folder: Path, answer: Callable[[str], str]) -> Iterator[None]:
    """Answer every request in a folder, as its reader would."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            for request in folder.glob("*.request.md"):
                path = folder / request.name.replace(".request.", ".answer.")
                if not path.exists():
                    partial = path.with_suffix(".part")
                    partial.write_text(answer(request.read_text("utf-8")), "utf-8")
                    partial.replace(path)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def post(server: AnsweringServer, body: Any) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.url}/chat/completions", data, {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_answer_in_the_folder_is_the_completion(tmp_path: Path) -> None:
    with serving(tmp_path) as server, answerer(tmp_path, lambda text: f"Two.\n({len(text)})"):
        status, body = post(server, ASKED)
    request = (tmp_path / "0001.request.md").read_text("utf-8")
    assert request == "# user\n\nHow many legs has a heron?\n"
    assert status == 200
    [choice] = body["choices"]
    content = f"Two.\n({len(request)})"
    assert choice["message"] == {"role": "assistant", "content": content}
    assert choice["finish_reason"] == "stop"


def test_requests_wait_at_the_same_time(tmp_path: Path) -> None:
    asked = [{"messages": [{"role": "user", "content": f"Count to {n}."}]} for n in range(6)]
    last = tmp_path / "0006.request.md"
    # Nothing is answered before all of them are there.
    with (
        serving(tmp_path) as server,
        ThreadPoolExecutor(6) as pool,
        answerer(tmp_path, lambda text: text.splitlines()[-1] if _wait_for(last) else ""),
    ):
        answers = list(pool.map(lambda one: post(server, one), asked))
    said = [body["choices"][0]["message"]["content"] for _, body in answers]
    assert said == [f"Count to {n}." for n in range(6)]


def _wait_for(path: Path) -> bool:
    for _ in range(500):
        if path.exists():
            return True
        threading.Event().wait(0.02)
    return False


def test_the_same_request_has_the_same_answer_after_a_restart_too(tmp_path: Path) -> None:
    with serving(tmp_path) as server, answerer(tmp_path, lambda _: "Two."):
        assert post(server, ASKED)[0] == 200
    with serving(tmp_path, timeout_s=0.0) as server:
        assert post(server, ASKED)[1]["choices"][0]["message"]["content"] == "Two."
        other = {"messages": [{"role": "user", "content": "And wings?"}]}
        assert post(server, other)[0] == 504
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0001.answer.md",
        "0001.request.md",
        "0002.request.md",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        {**ASKED, "stream": True},
    ],
)
def test_a_request_that_cannot_be_written_down_is_refused(tmp_path: Path, body: Any) -> None:
    with serving(tmp_path) as server:
        refused, answer = post(server, body)
    assert refused == 400
    assert answer["error"]["message"]
    assert not list(tmp_path.iterdir())


def test_a_request_that_waits_ends_with_the_server(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with serving(tmp_path) as server:
            waiting = pool.submit(post, server, ASKED)
            assert _wait_for(tmp_path / "0001.request.md")
        status, _ = waiting.result(timeout=30)
    assert status == 503
