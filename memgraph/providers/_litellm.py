"""Everything that knows litellm: loading it, calling it, and turning its errors into ours.

litellm takes seconds to import and acts on import (fetches a price list, reads a ``.env`` file), so
it is loaded at the first call and told not to. Its exceptions can quote the request, the key and
the provider's answer: nothing of their text leaves this module, only class names and statuses.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import tenacity

from memgraph.errors import (
    ExtraMissing,
    InvalidConfig,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import httpx


MAX_ANSWER_BYTES: Final = 4_000_000
"""Longest body that is read."""


def bound(client: httpx.Client, seconds: float) -> None:
    """Let a client give up on a body of over `MAX_ANSWER_BYTES`, or over ``seconds`` in coming.

    The client's own timeout begins anew with every byte.
    """
    import httpx  # litellm brings it

    class BoundedStream(httpx.SyncByteStream):
        def __init__(self, stream: httpx.SyncByteStream) -> None:
            self._stream = stream
            self._until = time.monotonic() + seconds

        def __iter__(self) -> Iterator[bytes]:
            received = 0
            for chunk in self._stream:
                received += len(chunk)
                if received > MAX_ANSWER_BYTES:
                    raise ValueError("the answer is too long")
                if time.monotonic() > self._until:
                    raise httpx.ReadTimeout("the answer comes too slowly")
                yield chunk

        def close(self) -> None:
            self._stream.close()

    def wrap(response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = BoundedStream(response.stream)

    hooks = client.event_hooks
    client.event_hooks = {**hooks, "response": [*hooks.get("response", []), wrap]}


EXTRA: Final = "litellm"
MAX_WAIT_S: Final = 30.0
"""Longest pause before another attempt; a provider that asks for more is not asked again."""

# 408 timeout, 409 and 425 "try again", 429 too many requests; every 5xx counts as well.
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425, 429})
# What litellm and the SDKs under it raise; the last five come from parsing odd answers.
_PARSING_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)

_load_lock = threading.Lock()
_calling = threading.local()


@dataclass(frozen=True)
class ModelConnection:
    """The connection to one model.

    Args:
        model: as litellm names it, for instance ``text-embedding-3-small`` or ``ollama/llama3``.
        timeout_s, retries, api_base, api_key, first_wait_s: see ``ModelOptions``.
        give_up_after_s: seconds after which nothing is tried again; None: no such limit.
        cut_off_late: nobody waits for a request longer than ``timeout_s``, be its answer on its
            way or not; else that is the longest silence. Needs `load`.

    Raises:
        InvalidConfig: a value out of range; ``details['key']`` names it.
    """

    model: str
    timeout_s: float
    retries: int
    api_base: str | None = None
    api_key: str | Path | None = field(default=None, repr=False)
    first_wait_s: float = 0.5
    give_up_after_s: float | None = None
    cut_off_late: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.timeout_s < float("inf"):
            raise InvalidConfig("The provider timeout must be above 0 seconds.", key="timeout_s")
        if self.retries < 0:
            raise InvalidConfig("Provider retries must not be negative.", key="retries")
        if not 0.0 <= self.first_wait_s <= MAX_WAIT_S:
            raise InvalidConfig("The first wait must be 0 to 30 seconds.", key="first_wait_s")


def call(
    connection: ModelConnection,
    operation: Literal["embedding", "completion", "rerank"],
    **request: Any,
) -> Any:
    """Call ``litellm.<operation>`` and repeat what failed for a passing reason.

    Returns:
        litellm's response object.

    Raises:
        ExtraMissing: litellm is not installed.
        ProviderUnavailable: still timing out, refused, 429 or 5xx after the last attempt.
        ProviderRejected: the key, the model or the request is not accepted.
        ProviderAnswerInvalid: the answer is not what litellm can read.
    """
    stop = tenacity.stop_after_attempt(connection.retries + 1)
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        stop=stop
        if connection.give_up_after_s is None
        else stop | tenacity.stop_before_delay(connection.give_up_after_s),
        wait=_pause_s(connection.first_wait_s),
        reraise=True,
    )
    if not connection.cut_off_late:
        return attempts(_call_once, connection, operation, request)
    return attempts(
        within, connection.timeout_s, lambda: _call_once(connection, operation, request)
    )


def _may_pass(error: BaseException) -> bool:
    if not isinstance(error, ProviderUnavailable) or isinstance(error, ExtraMissing):
        return False
    return bool(error.details.get("retry_after_s", 0.0) <= MAX_WAIT_S)


def _pause_s(first_wait_s: float) -> Callable[[tenacity.RetryCallState], float]:
    """Seconds before the next attempt: what the provider asked for, or doubling with jitter."""
    doubling = tenacity.wait_exponential(multiplier=first_wait_s, max=MAX_WAIT_S)
    jitter = tenacity.wait_random(0.0, first_wait_s)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, ProviderUnavailable) and "retry_after_s" in error.details:
            return float(error.details["retry_after_s"])
        return doubling(state) + jitter(state)

    return pause


def _call_once(connection: ModelConnection, operation: str, request: dict[str, Any]) -> Any:
    openai, httpx = _module("openai"), _module("httpx")
    function = getattr(_litellm(), operation)
    expected = (openai.OpenAIError, httpx.HTTPError, OSError, RuntimeError, *_PARSING_ERRORS)
    key = _key(connection.api_key)
    _calling.now = True
    try:
        return function(
            model=connection.model,
            timeout=connection.timeout_s,
            api_base=connection.api_base,
            api_key=key,
            max_retries=0,
            drop_params=True,
            **request,
        )
    except expected as error:
        translated = _translated(error, openai, httpx)
    finally:
        _calling.now = False
    # Outside the except block, so that neither __context__ nor the traceback keeps the original.
    raise translated


def _key(api_key: str | Path | None) -> str | None:
    if not isinstance(api_key, Path):
        return api_key
    try:
        return api_key.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderRejected(
            f"The provider's key cannot be read from {api_key}: {type(error).__name__}."
        ) from None


def load(*, chat: bool = False) -> None:
    """Load what a call needs, so that the time for a call is not spent on it. Takes seconds.

    Raises:
        ExtraMissing: litellm is not installed.
    """
    _litellm()
    # httpx and openai put off loading the latter two until their first request.
    for name in ("httpx", "openai", "httpcore", *(("openai.resources",) if chat else ())):
        _module(name)


def bounded_client(seconds: float) -> Any:
    """Return a client of litellm that gives up on an answer that is too long or comes too slowly.

    ``seconds`` are for the whole body, not from one byte to the next. Needs `load`.
    """
    handler = _module("litellm.llms.custom_httpx.http_handler").HTTPHandler()
    bound(handler.client, seconds)
    return handler


class _Silence(logging.Filter):
    """Keeps litellm's own logger quiet while we call: it writes answers and errors to stderr."""

    def filter(self, _record: logging.LogRecord) -> bool:
        return not getattr(_calling, "now", False)


_silence = _Silence()


def _litellm() -> ModuleType:
    with _load_lock:
        # Set only for the import: without them it fetches a price list and reads a .env file.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        litellm = _module("litellm")
        litellm.telemetry = False  # type: ignore[attr-defined]  # a plain module attribute
        litellm.suppress_debug_info = True  # type: ignore[attr-defined]  # it prints otherwise
        # litellm reads max_retries=0 as "unset": without this it triples every attempt.
        litellm.DEFAULT_MAX_RETRIES = 0  # type: ignore[attr-defined]
        _silence_schema_warnings()
        logging.getLogger("LiteLLM").addFilter(_silence)
        return litellm


def _module(name: str) -> ModuleType:
    """Import a module of the extra. Raises ExtraMissing: it, or a part of it, is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ExtraMissing.of(
            f"this model is reached through litellm, and {error.name or name} is not installed",
            extra=EXTRA,
        ) from error


def _silence_schema_warnings() -> None:
    """Hide pydantic's remarks on litellm's own classes; one of them quotes the answer."""
    for message in (
        r"Item '\w+' on TypedDict class 'ChatCompletion",
        r"(?s)Pydantic serializer warnings:.*field_name='(embedding|message|choices)'",
    ):
        warnings.filterwarnings("ignore", message=message, category=UserWarning, module="pydantic")


def _translated(error: BaseException, openai: ModuleType, httpx: ModuleType) -> ProviderError:
    """Our error for one of litellm's, by class, status and causes, never by its text."""
    chain = list(_causes(error))
    kind = type(error).__name__
    status = _status(chain, httpx)
    if status is not None:
        return _by_status(kind, status, _retry_after(chain, httpx))
    unsendable = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)
    if any(isinstance(e, unsendable) for e in chain):
        return ProviderRejected("The provider's address or key cannot be used.", error=kind)
    if any(isinstance(e, (httpx.TransportError, openai.APIConnectionError)) for e in chain[1:]):
        return _unavailable(kind, None)
    if any(isinstance(e, _PARSING_ERRORS) for e in chain):
        return ProviderAnswerInvalid(
            f"The provider's answer could not be read ({kind}).", reason="unreadable", error=kind
        )
    if any(type(e) is openai.OpenAIError for e in chain):
        # The SDK's bare root class: it could not even build a client, for want of a key.
        return ProviderRejected("No API key is configured for the provider.", error=kind)
    own_status = getattr(error, "status_code", None)
    return _by_status(kind, own_status if isinstance(own_status, int) else 500, None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _status(chain: list[BaseException], httpx: ModuleType) -> int | None:
    """Return the HTTP status that really came over the wire; litellm itself says 500 for want of
    one.
    """
    for error in chain:
        if isinstance(error, httpx.HTTPStatusError):
            return int(error.response.status_code)
    return None


def _retry_after(chain: list[BaseException], httpx: ModuleType) -> float | None:
    """Seconds of a Retry-After header; its date form is ignored."""
    for error in chain:
        if isinstance(error, httpx.HTTPStatusError):
            value = error.response.headers.get("retry-after", "")
            return float(value) if value.isascii() and value.isdigit() else None
    return None


def _by_status(kind: str, status: int, retry_after_s: float | None) -> ProviderError:
    if status in _RETRYABLE_STATUSES or status >= 500:
        return _unavailable(kind, status, retry_after_s)
    return ProviderRejected(
        f"The provider rejected the request ({kind}, status {status}).", error=kind, status=status
    )


def _unavailable(
    kind: str, status: int | None, retry_after_s: float | None = None
) -> ProviderUnavailable:
    cause = kind if status is None else f"{kind}, status {status}"
    details: dict[str, Any] = {"error": kind, "status": status, "retry_after_s": retry_after_s}
    return ProviderUnavailable(
        f"The provider cannot be reached or is overloaded ({cause}).",
        **{key: value for key, value in details.items() if value is not None},
    )


Result = TypeVar("Result")

MAX_AT_ONCE: Final = 32
"""Concurrent calls of one process, including abandoned ones."""

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return or raise what ``call`` does, if it does so in time.

    Raises:
        ProviderUnavailable: with ``details['reason']`` ``timeout``, or ``busy`` when too many
            calls are under way.
    """
    if not _slots.acquire(blocking=False):
        raise ProviderUnavailable("Too many calls to the provider hang.", reason="busy")
    future: Future[Result] = Future()
    # A daemon: a process that wants to end does not wait for a server that never will.
    thread = threading.Thread(target=_run, args=(call, future), daemon=True, name="memgraph-call")
    try:
        thread.start()
    except RuntimeError:
        _slots.release()
        raise
    if wait((future,), seconds).done:
        return future.result()
    raise ProviderUnavailable("The provider did not answer in time.", reason="timeout")


def _run(call: Callable[[], Result], future: Future[Result]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        _slots.release()
