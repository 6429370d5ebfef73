"""Send requests over httpx, blocking or asynchronously. The retry rules are in ``exchange``."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import httpx
from anyio.to_thread import run_sync

from memgraph.client.exchange import (
    PROBLEM,
    LocalWork,
    NoResponse,
    PauseStep,
    Response,
    RetryRules,
    SendStep,
    Step,
    Steps,
    media_type,
)
from memgraph.errors import InvalidInput

T = TypeVar("T")

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
CONNECT_S = 5.0
SLOW_S = 3_600.0
MAX_TIMEOUT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """The address of a server and the connection settings; see ``Client``."""

    url: httpx.URL
    timeout_s: float
    verify: ssl.SSLContext | bool

    def options(self, key: str | None) -> dict[str, Any]:
        """Return the arguments for both kinds of ``httpx`` clients.

        The environment is ignored: memories and keys must not be sent to a proxy that is meant for
        browsing, and a ``.netrc`` must not replace the key.
        """
        headers = {"User-Agent": "memgraph-client"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return {
            "base_url": self.url,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout_s, connect=min(CONNECT_S, self.timeout_s)),
            # Loading the CA certificates takes 50 ms, and only https needs them.
            "verify": self.verify if self.url.scheme == "https" else False,
            "follow_redirects": False,
            "trust_env": False,
        }


def server_of(
    url: str, key: str | None, *, timeout_s: float, verify: ssl.SSLContext | bool, plain_http: bool
) -> ServerConnection:
    """Validate an address and return its connection settings.

    Raises:
        InvalidInput: the address is invalid, or the key would be sent unencrypted to another
            machine. The message contains neither.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise InvalidInput(_ADDRESS, field="url") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise InvalidInput(_ADDRESS, field="url")
    if parsed.query or parsed.fragment or not 0 < (parsed.port or 1) < 65_536:
        raise InvalidInput(_ADDRESS, field="url")
    if key is not None and not _is_word(key):
        raise InvalidInput("a key must be one word of printable ASCII", field="key")
    elsewhere = parsed.scheme == "http" and parsed.host not in LOOPBACK
    if key is not None and elsewhere and not plain_http:
        raise InvalidInput(
            "a key must not be sent to another machine unencrypted: use https, or set plain_http",
            field="url",
            option="plain_http",
        )
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise InvalidInput(
            f"timeout_s must be above 0 and at most {MAX_TIMEOUT_S:,.0f}", field="timeout_s"
        )
    return ServerConnection(parsed, timeout_s, verify)


def _is_word(key: str) -> bool:
    return isinstance(key, str) and key != "" and all("!" <= item <= "~" for item in key)


_ADDRESS = "a server address looks like https://host or http://127.0.0.1:8420, without a password"


class BlockingSender:
    """Runs request sequences, blocking until they end. Thread-safe."""

    def __init__(
        self,
        server: ServerConnection,
        key: str | None,
        rules: RetryRules,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.rules = rules
        self.pause: Callable[[float], None] = time.sleep
        self._http = httpx.Client(**server.options(key), transport=transport)

    def run(self, steps: Steps[T]) -> T:
        """Return the result of a request sequence."""
        result: Any = None
        try:
            while True:
                result = self._do(steps.send(result))
        except StopIteration as end:
            answer: T = end.value
            return answer
        finally:
            steps.close()

    def close(self) -> None:
        self._http.close()

    def _do(self, step: Step) -> Any:
        if isinstance(step, PauseStep):
            self.pause(step.seconds)
            return None
        if isinstance(step, LocalWork):
            return step.do()
        request = _request(self._http, step)
        try:
            response = self._http.send(request, stream=True)
            try:
                sink = _sink(step, response)
                for piece in response.iter_bytes() if sink is not None else ():
                    sink.write(piece)
                return _answer(response, response.read() if _is_read(step, response) else b"")
            finally:
                response.close()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return no_answer(error, self._http.base_url)


class AsyncioSender:
    """Runs request sequences in an event loop."""

    def __init__(
        self,
        server: ServerConnection,
        key: str | None,
        rules: RetryRules,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.rules = rules
        self.pause: Callable[[float], Coroutine[Any, Any, None]] = anyio.sleep
        self._http = httpx.AsyncClient(**server.options(key), transport=transport)

    async def run(self, steps: Steps[T]) -> T:
        """Return the result of a request sequence."""
        result: Any = None
        try:
            while True:
                result = await self._do(steps.send(result))
        except StopIteration as end:
            answer: T = end.value
            return answer
        finally:
            steps.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def _do(self, step: Step) -> Any:
        if isinstance(step, PauseStep):
            await self.pause(step.seconds)
            return None
        if isinstance(step, LocalWork):
            return await run_sync(step.do)
        request = _request(self._http, step)
        try:
            response = await self._http.send(request, stream=True)
            try:
                if _is_read(step, response):
                    return _answer(response, await response.aread())
                sink = _sink(step, response)
                if sink is not None:
                    async for piece in response.aiter_bytes():
                        await run_sync(sink.write, piece)
                return _answer(response, b"")
            finally:
                await response.aclose()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return no_answer(error, self._http.base_url)


def _request(http: httpx.Client | httpx.AsyncClient, step: SendStep) -> httpx.Request:
    call = step.call
    return http.build_request(
        call.method,
        call.path,
        params=httpx.QueryParams(call.query),
        content=call.body,
        headers=dict(step.headers),
        timeout=httpx.Timeout(SLOW_S, connect=CONNECT_S) if call.slow else http.timeout,
    )


def _sink(step: SendStep, response: httpx.Response) -> Any:
    """Return the sink for the body of a successful response; error bodies are read into memory."""
    good = response.status_code == 200 and _kind(response) == step.call.accepts
    return step.call.sink if good else None


def _is_read(step: SendStep, response: httpx.Response) -> bool:
    """Return True when the body is read into memory; one of an unexpected type may be endless."""
    kinds = (PROBLEM,) if step.call.sink is not None else (PROBLEM, step.call.accepts)
    return _kind(response) in kinds


def _kind(response: httpx.Response) -> str:
    return media_type(response.headers.get("content-type", ""))


def _answer(response: httpx.Response, body: bytes) -> Response:
    return Response(
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        retry_after=response.headers.get("retry-after"),
        body=body,
    )


# Errors that occur before anything is sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
# OpenSSL's reasons for an answer that is not TLS; they differ between its versions.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})


def no_answer(error: httpx.HTTPError, url: httpx.URL) -> NoResponse:
    """Describe a transport failure.

    Args:
        url: the address of the server.
    """
    sent = not isinstance(error, _NOT_SENT)
    failed = "did not send a complete response" if sent else "cannot be reached"
    place = f"{url.scheme}://{url.netloc.decode('ascii')}"
    return NoResponse(
        why=type(error).__name__, sent=sent, text=f"{place} {failed}: {_reason(error)}"
    )


def _reason(error: httpx.HTTPError) -> str:
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused; is the server running?"
        if isinstance(cause, socket.gaierror):
            return "unknown host"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NO_TLS:
                return "the server does not use TLS; does it use plain http?"
            return f"TLS failed ({cause.reason})"
    if isinstance(error, httpx.TimeoutException):
        return f"timed out ({type(error).__name__})"
    return type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
