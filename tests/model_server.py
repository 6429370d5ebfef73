"""A real HTTP server on loopback that speaks OpenAI's protocol, as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-8f1c5a90-do-not-leak"
"""The API key of the tests; servers that misbehave quote it in their errors."""

Reply = tuple[int, Any, dict[str, str]]
Behaviour = Callable[[dict[str, Any]], Reply]


class ModelServer:
    """Answers each request by the next behaviour in the queue, the last one for ever."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._queue: list[Behaviour] = []
        self._let_go = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def behave(self, *behaviours: Behaviour) -> None:
        self._queue = list(behaviours)

    def close(self) -> None:
        self._let_go.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @staticmethod
    def says(status: int, body: Any, **headers: str) -> Behaviour:
        """A fixed answer: bytes and text go out as they are, other values as JSON."""
        return lambda request: (status, body, headers)

    @classmethod
    def fails(cls, status: int, **headers: str) -> Behaviour:
        """An error of the OpenAI shape whose text quotes the key."""
        return cls.says(status, {"error": {"message": f"bad {KEY}", "type": "x"}}, **headers)

    @staticmethod
    def embeds(vector: Callable[[str], list[float]]) -> Behaviour:
        """The good answer: one vector for each text, handed out last one first."""

        def behaviour(request: dict[str, Any]) -> Reply:
            data = [
                {"object": "embedding", "index": place, "embedding": vector(text)}
                for place, text in enumerate(request["input"])
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            body = {"object": "list", "model": "m", "data": data[::-1], "usage": usage}
            return 200, body, {}

        return behaviour

    @staticmethod
    def writes(text: str | None, finish_reason: str = "stop") -> Behaviour:
        """A chat completion with this text."""
        message = {"role": "assistant", "content": text}
        body = {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        return lambda request: (200, body, {})

    @staticmethod
    def calls(
        *calls: tuple[str, Any], text: str | None = None, finish_reason: str = "tool_calls"
    ) -> Behaviour:
        """A chat completion that asks for tools, each ``(name, arguments)``.

        Arguments that are text go out as they are, others as JSON.
        """
        asked = [
            {
                "id": f"call_{place}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for place, (name, given) in enumerate(calls)
        ]
        message = {"role": "assistant", "content": text, "tool_calls": asked}
        body = {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42},
        }
        return lambda request: (200, body, {})

    def dribbles(self, request: dict[str, Any]) -> Reply:
        """A body that never ends and comes one byte at a time, fast enough for any read timeout."""

        def bytes_for_ever() -> Iterator[bytes]:
            while not self._let_go.wait(0.02):
                yield b" "

        return 200, bytes_for_ever(), {"content-length": "1000000"}

    def hangs(self, request: dict[str, Any]) -> Reply:
        """Answers only when the server is closed (or after 30 s, should a test forget)."""
        self._let_go.wait(30)
        return 200, {}, {}

    def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # closure
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                request = json.loads(self.rfile.read(length))
                server.requests.append(
                    {"path": self.path, "authorization": self.headers["authorization"], **request}
                )
                queue = server._queue
                status, body, headers = (queue.pop(0) if len(queue) > 1 else queue[0])(request)
                if server._let_go.is_set():
                    return  # the client is long gone
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-type", "application/json")
                if isinstance(body, Iterator):
                    self.end_headers()
                    self.close_connection = True
                    self._stream(body)
                    return
                payload = body if isinstance(body, bytes) else self._text(body).encode()
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self._stream((payload,))

            def _stream(self, chunks: Iterable[bytes]) -> None:
                with contextlib.suppress(ConnectionError):  # the client gave up
                    for chunk in chunks:
                        self.wfile.write(chunk)

            @staticmethod
            def _text(body: Any) -> str:
                return body if isinstance(body, str) else json.dumps(body)

            def log_message(self, *_: Any) -> None:
                """No access log on stderr."""

        return Handler
