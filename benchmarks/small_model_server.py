"""An OpenAI-compatible server on loopback around one GGUF model, by llama-cpp-python.

    python benchmarks/small_model_server.py MODEL.gguf --port 8766

Runs in an environment with llama_cpp and without memgraph. It answers one request at a time, fits
the answer to the JSON schema of ``response_format``, and cuts a prompt that is longer than its
context in the middle, as many servers do without notice.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT_TOKENS = 8_192
MAX_TOKENS = 600


def loaded(path: str, context: int) -> Any:
    """Return a model that answers with the most probable tokens that fit a grammar.

    What was written lately is less probable: such a small model repeats itself without end.
    """
    import numpy as np
    from llama_cpp import Llama, llama_cpp

    class Sampler:
        """Shows the grammar one token, then 64, then all: mostly the most probable one fits."""

        def __init__(self, model: Any, grammar: Any) -> None:
            self._sizes = (1, 64, model.n_vocab())
            self._written: deque[int] = deque(maxlen=256)
            rules = (grammar._grammar.encode(), grammar._root.encode()) if grammar else ()
            make = llama_cpp.llama_sampler_init_grammar
            self._grammar = make(model._model.vocab, *rules) if rules else None
            if rules and not self._grammar:
                raise RuntimeError("the schema is too large")

        def sample(self, context: Any, place: int) -> int:
            pointer = llama_cpp.llama_get_logits_ith(context.ctx, place)
            logits = np.ctypeslib.as_array(pointer, shape=self._sizes[-1:]).copy()
            np.subtract.at(logits, list(self._written), 1.0)
            token = int(logits.argmax()) if not self._grammar else self._fitting(logits)
            self._written.append(token)
            return token

        def _fitting(self, logits: Any) -> int:
            for size in self._sizes:
                ids = np.argpartition(-logits, size - 1)[:size]
                options = [(int(each), float(logits[each]), 0.0) for each in ids]
                data = (llama_cpp.llama_token_data * size)(*options)
                tokens = llama_cpp.llama_token_data_array(data, size, -1, False)
                llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(tokens))
                best = max(data, key=lambda token: token.logit)
                if best.logit > -np.inf:
                    llama_cpp.llama_sampler_accept(self._grammar, best.id)
                    return int(best.id)
            raise RuntimeError("no token fits the grammar")

        def __del__(self) -> None:
            if self._grammar:
                llama_cpp.llama_sampler_free(self._grammar)

    class GreedyLlama(Llama):  # type: ignore[misc]
        def _init_sampler(self, *_: Any, grammar: Any = None, **__: Any) -> Sampler:
            return Sampler(self, grammar)

    defaults = llama_cpp.llama_model_default_params()
    # Weights that are packed for AMX crash llama.cpp on virtual machines.
    defaults.use_extra_bufts = False
    llama_cpp.llama_model_default_params = lambda: defaults
    return GreedyLlama(model_path=path, n_ctx=context, verbose=False, seed=1)


class Model:
    """A loaded model; calls wait for one another."""

    def __init__(self, path: str, context: int) -> None:
        self._llama = loaded(path, context)
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
