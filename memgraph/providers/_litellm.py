"""Load litellm, call it, and translate its errors. No other module imports its internals.

litellm takes seconds to import and has side effects on import (it fetches a price list and reads a
``.env`` file), so it is loaded at the first call, with these switched off. Its exceptions can quote
the request, the key and the provider's answer, so only class names and statuses leave this module,
never their text.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeVar

import tenacity

from memgraph.errors import (
    ExtraMissing,
    InvalidConfig,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)

EXTRA: Final = "litellm"
FIRST_WAIT_S = 0.5
"""The pause before the first retry, in seconds; it doubles each time."""
MAX_WAIT_S: Final = 30.0
"""The longest pause before a retry, in seconds; if a provider asks for more, nothing is retried."""

# 408 timeout, 409 and 425 "try again", 429 too many requests; every 5xx is retried as well.
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425, 429})
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_NOT_RUNNING: Final = "not_running"
# The exceptions that litellm and its SDKs raise when they cannot parse an answer.
_PARSING_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)

_load_lock = threading.Lock()
_calling = threading.local()


@dataclass(frozen=True)
class ModelConnection:
    """The connection to one model.

    Args:
        model: the name in litellm, for instance ``text-embedding-3-small`` or ``ollama/llama3``.
        timeout_s, retries, api_base, api_key: see ``ModelOptions``.

    Raises:
        InvalidConfig: a value is out of range; ``details['key']`` names it.
    """

    model: str
    timeout_s: float
    retries: int
    api_base: str | None = None
    api_key: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.timeout_s < float("inf"):
            raise InvalidConfig("The provider timeout must be above 0 seconds.", key="timeout_s")
        if self.retries < 0:
            raise InvalidConfig("Provider retries must not be negative.", key="retries")


def call(
    connection: ModelConnection,
    operation: Literal["embedding", "completion"],
    **request: Any,
) -> Any:
    """Call ``litellm.<operation>``, and retry temporary failures. Requires `load`.

    ``timeout_s`` limits a whole request: the clients of litellm restart theirs with every byte.

    Returns:
        litellm's response object.

    Raises:
        ExtraMissing: litellm is not installed.
        ProviderUnavailable: the last attempt timed out, was refused, or returned 429 or 5xx. A
            refusal by this machine is not retried: no server runs there.
        ProviderRejected: the key, the model or the request was not accepted.
        ProviderAnswerInvalid: litellm cannot read the answer.
    """
    attempts = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        stop=tenacity.stop_after_attempt(connection.retries + 1),
        wait=_pause_s(),
        reraise=True,
    )
    return attempts(
        within, connection.timeout_s, lambda: _call_once(connection, operation, request)
    )


def _may_pass(error: BaseException) -> bool:
    if not isinstance(error, ProviderUnavailable) or isinstance(error, ExtraMissing):
        return False
    if error.details.get("reason") == _NOT_RUNNING:
        return False
    return bool(error.details.get("retry_after_s", 0.0) <= MAX_WAIT_S)


def _pause_s() -> Callable[[tenacity.RetryCallState], float]:
    """Return a function for the pause before the next attempt, in seconds.

    It is the time that the provider asked for, or else doubles each time, with jitter.
    """
    doubling = tenacity.wait_exponential(multiplier=FIRST_WAIT_S, max=MAX_WAIT_S)
    jitter = tenacity.wait_random(0.0, FIRST_WAIT_S)

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
    """Import what a call needs, so that it does not count against the timeout. Takes seconds.

    Raises:
        ExtraMissing: litellm is not installed.
    """
    # httpx and openai import the last two only at their first request.
    for name in ("openai", "httpx", "httpcore", *(("openai.resources",) if chat else ())):
        _module(name)
    _litellm()


class _Silence(logging.Filter):
    """Silence litellm's own logger during our calls: it writes answers and errors to stderr."""

    def filter(self, _record: logging.LogRecord) -> bool:
        return not getattr(_calling, "now", False)


_silence = _Silence()


def _litellm() -> ModuleType:
    with _load_lock:
        # Read by the import: without these it fetches a price list and reads a .env file.
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
    """Import a module of the extra. Raises ExtraMissing if any of its packages is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ExtraMissing.of(
            f"this model needs litellm, but {error.name or name} is not installed",
            extra=EXTRA,
        ) from error


def _silence_schema_warnings() -> None:
    """Suppress pydantic's warnings about litellm's classes; one of them quotes the answer."""
    for message in (
        r"Item '\w+' on TypedDict class 'ChatCompletion",
        r"(?s)Pydantic serializer warnings:.*field_name='(embedding|message|choices)'",
    ):
        warnings.filterwarnings("ignore", message=message, category=UserWarning, module="pydantic")


def _translated(error: BaseException, openai: ModuleType, httpx: ModuleType) -> ProviderError:
    """Translate an error of litellm by its class, status and causes, never by its text."""
    chain = list(_causes(error))
    kind = type(error).__name__
    # litellm itself reports the status 500 without a response.
    answers = (each.response for each in chain if isinstance(each, httpx.HTTPStatusError))
    if (response := next(answers, None)) is not None:
        # The date form of Retry-After is ignored.
        wait_s = response.headers.get("retry-after", "")
        is_number = wait_s.isascii() and wait_s.isdigit()
        return _by_status(kind, response.status_code, float(wait_s) if is_number else None)
    if any(isinstance(e, (httpx.TimeoutException, openai.APITimeoutError)) for e in chain):
        return ProviderUnavailable(
            "The provider did not answer in time.", reason="timeout", error=kind
        )
    if any(isinstance(e, ConnectionRefusedError) for e in chain):
        return _refused(kind, chain, httpx)
    unsendable = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL)
    if any(isinstance(e, unsendable) for e in chain):
        return ProviderRejected("The provider's address or key is invalid.", error=kind)
    if any(isinstance(e, (httpx.TransportError, openai.APIConnectionError)) for e in chain[1:]):
        return _unavailable(kind, None)
    if any(isinstance(e, _PARSING_ERRORS) for e in chain):
        return ProviderAnswerInvalid(
            f"The provider's answer could not be read ({kind}).", reason="unreadable", error=kind
        )
    if any(type(e) is openai.OpenAIError for e in chain):
        # The SDK raises its bare root class if it cannot create a client without a key.
        return ProviderRejected("No API key is configured for the provider.", error=kind)
    own_status = getattr(error, "status_code", None)
    return _by_status(kind, own_status if isinstance(own_status, int) else 500, None)


def _refused(kind: str, chain: list[BaseException], httpx: ModuleType) -> ProviderUnavailable:
    urls = (error.request.url for error in chain if isinstance(error, httpx.ConnectError))
    url = next((url for url in urls if url.host in _LOOPBACK), None)
    if url is not None:
        return _not_running(kind, f"{url.host}:{url.port}")
    return ProviderUnavailable(
        "The provider cannot be reached: connection refused.", reason="refused", error=kind
    )


def _not_running(kind: str, place: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"The provider cannot be reached: connection refused; is the server at {place} running?",
        reason=_NOT_RUNNING,
        error=kind,
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


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
"""The maximum number of concurrent calls in the process, including abandoned ones."""

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Call a function in another thread with a time limit; return its result or raise its error.

    A call that exceeds the limit is abandoned, not stopped.

    Raises:
        ProviderUnavailable: ``details['reason']`` is ``timeout`` after ``seconds``, or ``busy`` if
            too many calls are running.
    """
    if not _slots.acquire(blocking=False):
        raise ProviderUnavailable("Too many calls to the provider are running.", reason="busy")
    future: Future[Result] = Future()
    # A daemon thread, so that the process can exit while a server never answers.
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
