"""Send calls to a server over httpx, and retry them where that is safe."""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from memgraph import errors
from memgraph.errors import InvalidInput, MemgraphError, RemoteAnswerInvalid, RemoteUnavailable

T = TypeVar("T")
Read = Callable[[bytes], T]

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
CONNECT_S: Final = 5.0
SLOW_S: Final = 3_600.0
MAX_TIMEOUT_S: Final = 86_400.0
TIMEOUT_S: Final = 35.0
"""A little longer than a server's default time limit, so that its own error arrives."""
RETRIES: Final = 2
FIRST_PAUSE_S: Final = 0.2
"""The pause before the first retry; each further one is twice as long."""
LONGEST_PAUSE_S: Final = 30.0
"""The longest pause; a server that asks for more (Retry-After) is not retried."""

# A proxy's answer when the server is down.
_AWAY: Final = frozenset({502, 503, 504})
# With these the server has not begun any work.
_UNTOUCHED_STATUS: Final = frozenset({408, 425, 429})
_UNTOUCHED: Final = (errors.RateLimited, errors.ServerBusy)
# Temporary errors; a damaged store is permanent.
_PASSING: Final = (
    errors.DatabaseBusy,
    errors.DatabaseUnreachable,
    errors.RequestTimeout,
    errors.ServerEnding,
    RemoteUnavailable,
)
# Errors that occur before anything is sent.
_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
)
_ADDRESS: Final = (
    "a server address looks like https://host or http://127.0.0.1:8420, without a password"
)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """The request of a call, and the parser of its response.

    Attributes:
        path: the path from the root of the server, every segment escaped.
        params: query parameters; None is left out, and a collection is sent item by item.
        body: the bytes to send, or None.
        read: parses the body of a successful response.
        repeats: True when it may be sent again though its outcome is unknown.
        slow: True when the server may work on it for minutes.
        accepts: the media type of a successful response; None if it has no body.
        sink: receives the body of a successful response piece by piece; ``read`` then gets no
            bytes.
    """

    method: str
    path: str
    read: Read[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    repeats: bool = True
    slow: bool = False
    accepts: str | None = JSON
    sink: BinaryIO | None = None

    @property
    def query(self) -> httpx.QueryParams:
        """The parameters as they are sent."""
        pairs: list[tuple[str, str | int | float | bool | None]] = []
        for name, value in self.params.items():
            is_repeated = isinstance(value, Collection) and not isinstance(value, str)
            values = value if is_repeated else (value,)
            pairs.extend((name, _written(item)) for item in values if item is not None)
        return httpx.QueryParams(pairs)


class Answer(NamedTuple):
    """A response. ``body`` is empty if it went to a sink, or is of a type that is not read."""

    status: int
    media_type: str
    retry_after: str
    body: bytes


class Server:
    """A server, and the connections to it. Thread-safe. See ``Client`` for the arguments."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        verify: ssl.SSLContext | bool = True,
        plain_http: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = _checked_url(url, key, plain_http=plain_http)
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            message = f"timeout_s must be above 0 and at most {MAX_TIMEOUT_S:,.0f}"
            raise InvalidInput(message, field="timeout_s")
        if not isinstance(retries, int) or retries < 0:
            raise InvalidInput("retries must be a whole number, 0 or more", field="retries")
        self.pause: Callable[[float], None] = time.sleep
        self._retries = retries
        headers = {"User-Agent": "memgraph-client"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
            # Loading the CA certificates takes 50 ms, and only https needs them.
            verify=verify if self.url.scheme == "https" else False,
            follow_redirects=False,
            # Memories and keys must not be sent to a proxy that is meant for browsing, and a
            # ``.netrc`` must not replace the key.
            trust_env=False,
            transport=transport,
        )

    def send(self, call: Call[T]) -> T:
        """Carry out a call.

        Raises:
            MemgraphError: the server's error, by its code.
            RemoteUnavailable: there is no connection, or it broke.
            RemoteAnswerInvalid: the response does not come from memgraph.
        """
        for attempt in range(self._retries + 1):
            answer = self._attempt(call)
            if isinstance(answer, Answer) and 200 <= answer.status < 300:
                if call.accepts not in (None, answer.media_type):
                    raise _not_memgraph(answer)
                return call.read(answer.body)
            error = self._unreached(answer) if isinstance(answer, Exception) else _refusal(answer)
            pause = _pause(call, answer, error, attempt)
            if pause is None or attempt == self._retries:
                # A failure of the transport is not its cause: it may show the request.
                raise error
            self.pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _attempt(self, call: Call[Any]) -> Answer | httpx.HTTPError:
        headers = {"Accept": f"{call.accepts or JSON}, {PROBLEM}"}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        request = self._http.build_request(
            call.method,
            call.path,
            params=call.query,
            content=call.body,
            headers=headers,
            timeout=httpx.Timeout(SLOW_S, connect=CONNECT_S) if call.slow else self._http.timeout,
        )
        try:
            with closing(self._http.send(request, stream=True)) as response:
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                body = b""
                if call.sink is not None and response.status_code == 200 and kind == call.accepts:
                    for piece in response.iter_bytes():
                        call.sink.write(piece)
                # A body of an unexpected type may be endless.
                elif kind == PROBLEM or (call.sink is None and kind == call.accepts):
                    body = response.read()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return error
        return Answer(response.status_code, kind, response.headers.get("retry-after", ""), body)

    def _unreached(self, error: httpx.HTTPError) -> RemoteUnavailable:
        place, cause = (
            f"{self.url.scheme}://{self.url.netloc.decode('ascii')}",
            type(error).__name__,
        )
        message = f"{place} did not send a complete response ({cause})"
        if isinstance(error, _NOT_SENT):
            # What the system says; a later error may quote the response.
            message = f"{place} cannot be reached; is the server running? ({error})"
        return RemoteUnavailable(message, cause=cause)


def value_of(kind: type[T]) -> Read[T]:
    """Return a reader of a value, a dataclass or a mapping. Fields of a later version are ignored.

    The reader raises RemoteAnswerInvalid for anything else.
    """
    # Built at first use, as values are.
    adapter = cache(lambda: TypeAdapter(kind))

    def read(body: bytes) -> T:
        try:
            return adapter().validate_json(body, extra="ignore")
        except ValidationError:
            raise RemoteAnswerInvalid(
                "the server's response is not the expected one: does it run another version?"
            ) from None

    return read


def error_of(code: str | None, detail: Any, details: Any) -> MemgraphError | None:
    """Return the library's error of a code; None if there is none."""
    kind = errors.kinds_by_code().get(code or "")
    if kind is None:
        return None
    error = kind(detail if isinstance(detail, str) and detail else "the server does not say why")
    error.details = dict(details) if isinstance(details, Mapping) else {}
    return error


def _refusal(answer: Answer) -> MemgraphError:
    """Return the error for an unsuccessful response."""
    problem: Any = None
    if answer.media_type == PROBLEM:
        try:
            problem = json.loads(answer.body)
        except (ValueError, RecursionError):
            return _not_memgraph(answer)
    elif answer.status in _AWAY:
        message = f"a proxy answered {answer.status}: the server is not reachable"
        return RemoteUnavailable(message, status=answer.status)
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return _not_memgraph(answer)
    error = error_of(problem["code"], problem.get("detail"), problem.get("details"))
    if isinstance(error, errors.RequestRefused) and answer.status in (404, 405):
        return RemoteAnswerInvalid(
            "the server does not know this call: is it an older version?", status=answer.status
        )
    if error is None:
        code = problem["code"][:80]
        return RemoteAnswerInvalid(
            f"the server reports an error that this client does not know ({code}):"
            f" {problem.get('detail')}",
            status=answer.status,
            code=code,
        )
    pause = _seconds(answer.retry_after)
    if pause is not None:
        error.details.setdefault("retry_after_s", pause)
    return error


def _not_memgraph(answer: Answer) -> RemoteAnswerInvalid:
    hint = "redirects are not followed" if 300 <= answer.status < 400 else "is this its address?"
    return RemoteAnswerInvalid(
        f"not a response of a memgraph server ({answer.status}): {hint}", status=answer.status
    )


def _pause(
    call: Call[Any], answer: Answer | httpx.HTTPError, error: MemgraphError, attempt: int
) -> float | None:
    """Return the seconds to wait before a retry; None if the call must not be retried.

    Up to half of each pause is random.
    """
    if isinstance(answer, Answer):
        untouched = answer.status in _UNTOUCHED_STATUS or isinstance(error, _UNTOUCHED)
        if not untouched and not (isinstance(error, _PASSING) and call.repeats):
            return None
        retry_after_s = _seconds(answer.retry_after)
        if retry_after_s is not None:
            return retry_after_s if retry_after_s <= LONGEST_PAUSE_S else None
    elif not isinstance(answer, _NOT_SENT) and (not call.repeats or call.sink is not None):
        return None
    pause = min(FIRST_PAUSE_S * 2.0**attempt, LONGEST_PAUSE_S)
    return pause * random.uniform(0.5, 1.0)


def _seconds(retry_after: str) -> float | None:
    """Return whole seconds; a date is ignored."""
    text = retry_after.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _checked_url(url: str, key: str | None, *, plain_http: bool) -> httpx.URL:
    """Return the address of a server.

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
    is_word = isinstance(key, str) and key != "" and all("!" <= item <= "~" for item in key)
    if key is not None and not is_word:
        raise InvalidInput("a key must be one word of printable ASCII", field="key")
    elsewhere = parsed.scheme == "http" and parsed.host not in LOOPBACK
    if key is not None and elsewhere and not plain_http:
        raise InvalidInput(
            "a key must not be sent to another machine unencrypted: use https, or set plain_http",
            field="url",
            option="plain_http",
        )
    return parsed


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if not is_storable(text):
        raise InvalidInput("a filter contains a NUL character or a lone surrogate")
    return text


def is_storable(text: str) -> bool:
    """Return True for a text without NUL characters and lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
