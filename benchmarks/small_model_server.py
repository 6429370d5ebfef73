"""An OpenAI-compatible server on loopback around one GGUF model, by llama-cpp-python.

    python benchmarks/small_model_server.py MODEL.gguf --port 8766

Runs in an environment with llama_cpp and without memgraph. It answers one request at a time, fits
the answer to the JSON schema of ``response_format``, and cuts a prompt that is longer than its
context in the middle, as many servers do without notice.
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT_TOKENS = 8_192
MAX_TOKENS = 1_000


class Model:
    """A loaded model; calls wait for one another."""

    def __init__(self, path: str, context: int) -> None:
        from llama_cpp import Llama, llama_cpp

        defaults = llama_cpp.llama_model_default_params()
        # Weights that are packed for AMX crash llama.cpp on virtual machines.
        defaults.use_extra_bufts = False
        llama_cpp.llama_model_default_params = lambda: defaults
        self._llama = Llama(model_path=path, n_ctx=context, verbose=False, seed=1)
        self._context = context
        self._lock = threading.Lock()

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion."""
        form = request.get("response_format") or {}
        schema = (form.get("json_schema") or {}).get("schema")
        limit = min(request.get("max_tokens") or MAX_TOKENS, MAX_TOKENS)
        with self._lock:
            completion: dict[str, Any] = self._llama.create_chat_completion(
                messages=[self._fitting(each) for each in request["messages"]],
                response_format=schema and {"type": "json_object", "schema": schema},
                temperature=0.0,
                max_tokens=limit,
            )
        return completion

    def _fitting(self, message: dict[str, str]) -> dict[str, str]:
        # Half the context for each message, at some three characters a token.
        most, text = self._context * 3 // 2, message["content"]
        if len(text) > most:
            text = f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"
        return {**message, "content": text}


def handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                status, answer = 200, model.complete(json.loads(body))
            except (ValueError, KeyError, RuntimeError) as error:
                status, answer = 500, {"error": {"message": type(error).__name__}}
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            """No access log."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8_766)
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS)
    chosen = parser.parse_args()
    model = Model(chosen.model, chosen.context)
    server = ThreadingHTTPServer(("127.0.0.1", chosen.port), handler(model))
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
