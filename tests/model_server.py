"""A real HTTP server on loopback that speaks the OpenAI protocol, well or badly, as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
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
                payload = body if isinstance(body, bytes) else self._text(body).encode()
                if server._let_go.is_set():
                    return  # the client is long gone
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            @staticmethod
            def _text(body: Any) -> str:
                return body if isinstance(body, str) else json.dumps(body)

            def log_message(self, *_: Any) -> None:
                """No access log on stderr."""

        return Handler
