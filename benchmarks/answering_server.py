"""An OpenAI-compatible server whose answers are written into a folder by whoever reads there.

    python -m benchmarks.answering_server FOLDER --port 8765

Each request becomes a file ``0001.request.md``: the messages as text. The request waits until
``0001.answer.md`` stands beside it (written under another name and renamed, so that it is never
read half), whose text is the completion. A request with the same text as an earlier one is that
request: a run that is repeated gets the answers that are there. Listens on loopback alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

TIMEOUT_S: Final = 3_600.0
MAX_BODY_BYTES: Final = 16_000_000
_PATHS: Final = ("/v1/chat/completions", "/chat/completions")
_POLL_S: Final = 0.1
_REQUEST, _ANSWER = ".request.md", ".answer.md"


class Refused(Exception):
    """A request that is answered with an error: an HTTP status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class AnsweringServer:
    """Serves until it is closed.

    Args:
        folder: of requests and answers; made where it is missing.
        port: 0: any free one.
        timeout_s: how long a request waits for its answer before it gets a 504.
    """

    def __init__(self, folder: Path, *, port: int = 0, timeout_s: float = TIMEOUT_S) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._timeout_s = timeout_s
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._names = {
            path.read_text("utf-8"): path.name.removesuffix(_REQUEST)
            for path in sorted(folder.glob(f"[0-9]*{_REQUEST}"))
        }
        self._last = max((int(name) for name in self._names.values()), default=0)
        self._http = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def serve(self) -> None:
        """Serve requests until `close`."""
        self._http.serve_forever(0.05)

    def close(self) -> None:
        """Stop serving; requests that wait get a 503."""
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()

    def complete(self, body: bytes) -> dict[str, Any]:
        """Write a request down, wait for its answer, and return it as a chat completion.

        Raises:
            Refused: the request is invalid, or there is no answer in time.
        """
        request = _request(body)
        name = self._place(_as_text(request))
        return {
            "id": f"chatcmpl-{name}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.get("model", "folder"),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": self._answer(name)},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }

    def _place(self, text: str) -> str:
        """Return the number of a request, which is written down unless it is there already."""
        with self._lock:
            if text not in self._names:
                name = f"{self._last + 1:04}"
                partial = self._folder / f".{name}.part"
                try:
                    partial.write_text(text, "utf-8")
                    partial.replace(self._folder / f"{name}{_REQUEST}")
                except OSError as error:
                    raise Refused(500, f"cannot write the request: {error.strerror}") from error
                self._names[text] = name
                self._last += 1
            return self._names[text]

    def _answer(self, name: str) -> str:
        path = self._folder / f"{name}{_ANSWER}"
        until = time.monotonic() + self._timeout_s
        while not path.exists():
            if time.monotonic() > until:
                raise Refused(504, f"no {path.name} within {self._timeout_s:g} seconds")
            if self._closed.wait(_POLL_S):
                raise Refused(503, "the server was stopped")
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(500, f"cannot read {path.name}: {type(error).__name__}") from error

    def _handler(server: AnsweringServer) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # closure
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                try:
                    self._send(200, server.complete(self._body()))
                except Refused as error:
                    message = {"message": str(error), "type": "answering_server"}
                    self._send(error.status, {"error": message})

            def _body(self) -> bytes:
                if self.path not in _PATHS:
                    raise Refused(404, f"only {_PATHS[0]} is served")
                # A web page cannot send this type to another site without asking first.
                if self.headers.get_content_type() != "application/json":
                    raise Refused(415, "the body must be application/json")
                length = self.headers.get("content-length", "")
                if not length.isdecimal():
                    raise Refused(411, "a content-length is needed")
                if int(length) > MAX_BODY_BYTES:
                    raise Refused(413, f"the body is over {MAX_BODY_BYTES} bytes")
                return self.rfile.read(int(length))

            def _send(self, status: int, body: Mapping[str, Any]) -> None:
                payload = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(payload)))
                    self.end_headers()
                    self.wfile.write(payload)
                except ConnectionError:
                    self.close_connection = True  # the client gave up

            def log_message(self, *_: Any) -> None:
                """No access log on stderr."""

        return Handler


def _request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "the body is not JSON") from error
    if not isinstance(request, dict) or not _are_messages(request.get("messages")):
        raise Refused(400, "messages must be a list of messages with a role and a text")
    if request.get("stream"):
        raise Refused(400, "stream is not supported")
    return request


def _are_messages(messages: object) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(each, dict)
            and isinstance(each.get("role"), str)
            and isinstance(each.get("content"), str)
            for each in messages
        )
    )


def _as_text(request: Mapping[str, Any]) -> str:
    messages: Sequence[Mapping[str, str]] = request["messages"]
    parts = [f"# {each['role']}\n\n{each['content'].strip()}\n" for each in messages]
    form = request.get("response_format")
    if isinstance(form, Mapping) and isinstance(form.get("json_schema"), Mapping):
        schema = json.dumps(form["json_schema"].get("schema"))
        parts.append(f"# form of the answer\n\nJSON that fits {schema}\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="of requests and answers")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, help="seconds that a request waits"
    )
    given = parser.parse_args()
    server = AnsweringServer(given.folder, port=given.port, timeout_s=given.timeout)
    print(f"{server.url} writes requests to {given.folder}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()


if __name__ == "__main__":
    main()
