"""The protocol of one call: send, wait, and retry where that is safe. No IO.

``exchange`` is a generator. It yields steps (``SendStep``, ``PauseStep``, ``LocalWork``) and
receives their results, so that the sync and the async sender share all rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from memgraph import errors
from memgraph.client.calls import JSON, Call
from memgraph.errors import (
    Conflict,
    InvalidInput,
    MemgraphError,
    RemoteAnswerInvalid,
    RemoteUnavailable,
)
from memgraph.model.remote import Health
from memgraph.paths import take_free_name

T = TypeVar("T")

PROBLEM: Final = "application/problem+json"
# A proxy's answer when the server is down.
_AWAY: Final = frozenset({502, 503, 504})
# With these the server has not begun any work.
_UNTOUCHED_STATUS: Final = frozenset({408, 425, 429})
_UNTOUCHED: Final = (errors.RateLimited, errors.ServerBusy)
# Temporary errors; a damaged store is permanent.
_PASSING: Final = (
    errors.DatabaseBusy,
    errors.RequestTimeout,
    errors.ServerEnding,
    RemoteUnavailable,
)


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The retry rules of a client.

    Attributes:
        retries: the maximum number of retries of a call; 0 or more.
        first_pause_s: the pause before the first retry; each further one is twice as long. Up to
            half of each pause is random.
        longest_pause_s: the longest pause; a server that asks for more (Retry-After) is not
            retried.
    """

    retries: int = 2
    first_pause_s: float = 0.2
    longest_pause_s: float = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.retries, int) or self.retries < 0:
            raise InvalidInput("retries must be a whole number, 0 or more", field="retries")


@dataclass(frozen=True, slots=True)
class SendStep:
    """A call to send; its result is a ``Response`` or a ``NoResponse``."""

    call: Call[Any]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PauseStep:
    """A pause; its result is None."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Local work, done outside the event loop if there is one; its result is that of the work."""

    do: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A response. ``body`` is empty if it went to a sink or its media type is not read."""

    status: int
    content_type: str
    retry_after: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No response, or a partial one.

    Attributes:
        why: the name of the failure; never text of the request.
        sent: True when the server may have received the request.
        text: the address and the reason, for a person.
    """

    why: str
    sent: bool
    text: str


Step: TypeAlias = SendStep | PauseStep | LocalWork
Steps: TypeAlias = Generator[Step, Any, T]


def exchange(call: Call[T], rules: RetryRules) -> Steps[T]:
    """Carry out one call.

    Raises:
        MemgraphError: the server's error, by its code.
        RemoteUnavailable: there is no connection, or it broke.
        RemoteAnswerInvalid: the response does not come from memgraph.
    """
    headers = {"Accept": f"{call.accepts or JSON}, {PROBLEM}"}
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    for attempt in range(rules.retries + 1):
        answer: Response | NoResponse = yield SendStep(call, headers)
        if isinstance(answer, Response) and 200 <= answer.status < 300:
            return call.read(_good(call, answer))
        error = _refusal(answer)
        pause = _pause(call, answer, error, attempt, rules)
        if pause is None or attempt == rules.retries:
            raise error
        yield PauseStep(pause)
    raise AssertionError("the last attempt returns or raises")


def _good(call: Call[Any], answer: Response) -> bytes:
    """Return the body of a successful response, after checking its type."""
    if call.accepts is not None and media_type(answer.content_type) != call.accepts:
        raise _not_memgraph(answer)
    return answer.body


def _refusal(answer: Response | NoResponse) -> MemgraphError:
    """Return the error for an unsuccessful response."""
    if isinstance(answer, NoResponse):
        return RemoteUnavailable(answer.text, cause=answer.why)
    if media_type(answer.content_type) == PROBLEM:
        return _error_of_answer(answer)
    if answer.status in _AWAY:
        return RemoteUnavailable(
            f"a proxy answered {answer.status}: the server is not reachable",
            status=answer.status,
        )
    return _not_memgraph(answer)


def _error_of_answer(answer: Response) -> MemgraphError:
    """Return the library's error for a problem response."""
    try:
        problem = json.loads(answer.body)
    except (ValueError, RecursionError):
        return _not_memgraph(answer)
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return _not_memgraph(answer)
    code, details = problem["code"], problem.get("details")
    kind = errors.kinds_by_code().get(code)
    if kind is errors.RequestRefused and answer.status in (404, 405):
        return RemoteAnswerInvalid(
            "the server does not know this call: is it an older version?", status=answer.status
        )
    if kind is None:
        return RemoteAnswerInvalid(
            f"the server reports an error that this client does not know ({code[:80]}):"
            f" {_text(problem.get('detail'))}",
            status=answer.status,
            code=code[:80],
        )
    error = kind(_text(problem.get("detail")))
    error.details = dict(details) if isinstance(details, dict) else {}
    pause = _seconds(answer.retry_after)
    if pause is not None:
        error.details.setdefault("retry_after_s", pause)
    return error


def error_of(health: Health) -> MemgraphError:
    """Return the error because of which an orchestrator is disabled."""
    kind = errors.kinds_by_code().get(health.code or "")
    if kind is None:
        return RemoteAnswerInvalid("the server does not report why the orchestrator is disabled")
    error = kind(_text(health.message))
    error.details = dict(health.details)
    return error


def _pause(
    call: Call[Any],
    answer: Response | NoResponse,
    error: MemgraphError,
    attempt: int,
    rules: RetryRules,
) -> float | None:
    """Return the seconds to wait before a retry; None if the call must not be retried."""
    if not _may_repeat(call, answer, error):
        return None
    retry_after_s = _seconds(answer.retry_after) if isinstance(answer, Response) else None
    if retry_after_s is not None:
        return retry_after_s if retry_after_s <= rules.longest_pause_s else None
    pause = min(rules.first_pause_s * 2.0**attempt, rules.longest_pause_s)
    return pause * random.uniform(0.5, 1.0)


def _may_repeat(call: Call[Any], answer: Response | NoResponse, error: MemgraphError) -> bool:
    if isinstance(answer, NoResponse):
        if call.sink is not None and answer.sent:
            return False
        return not answer.sent or call.repeats
    if answer.status in _UNTOUCHED_STATUS or isinstance(error, _UNTOUCHED):
        return True
    return isinstance(error, _PASSING) and call.repeats


def _not_memgraph(answer: Response) -> RemoteAnswerInvalid:
    hint = "redirects are not followed" if 300 <= answer.status < 400 else "is this its address?"
    return RemoteAnswerInvalid(
        f"not a response of a memgraph server ({answer.status}): {hint}", status=answer.status
    )


def media_type(content_type: str) -> str:
    """Return a Content-Type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def _seconds(retry_after: str | None) -> float | None:
    """Return whole seconds; a date is ignored."""
    text = (retry_after or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _text(detail: Any) -> str:
    return detail if isinstance(detail, str) and detail else "the server does not say why"


@contextmanager
def whole(target: Path, *, force: bool) -> Iterator[BufferedRandom]:
    """Open a temporary file next to ``target``, and replace the target when the block succeeds.

    Call ``durable`` on it inside the block; flushing a large file may be done in a thread.

    Args:
        force: replace an existing file.

    Raises:
        Conflict: the file exists.
        InvalidInput: it is a folder.
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder; name a file")
    if os.path.lexists(target) and not force:
        raise Conflict(f"the file already exists: {target}", path=str(target))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        if force:
            draft.replace(target)
        else:
            take_free_name(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def durable(file: BufferedRandom) -> BufferedRandom:
    """Flush a file to disk, and return it."""
    file.flush()
    os.fsync(file.fileno())
    return file


_SQLITE: Final = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A finished export. ``records``: the number of lines of each kind."""

    orchestrator: str
    path: Path
    records: dict[str, int]
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A finished backup, which the server checked before sending."""

    orchestrator: str
    path: Path
    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}


def exported(file: BufferedRandom, name: str, path: Path) -> ExportFile:
    """Check an export and return its report.

    Raises:
        RemoteAnswerInvalid: it is not an export, or it is truncated.
    """
    counts: dict[str, int] = {}
    digest, records = hashlib.sha256(), hashlib.sha256()
    kind, last = "", b""
    file.seek(0)
    for number, line in enumerate(file):
        digest.update(line)
        if number > 1:
            records.update(last)
        kind, last = _kind(line), line
        counts[kind] = counts.get(kind, 0) + 1
    if kind != "end" or json.loads(last).get("sha256") != records.hexdigest():
        raise RemoteAnswerInvalid("the received export is incomplete", orchestrator=name)
    for frame in ("header", "end"):
        counts.pop(frame, None)
    return ExportFile(name, path, counts, digest.hexdigest())


def backed_up(file: BufferedRandom, name: str, path: Path) -> BackupFile:
    """Check a backup and return its report. Raises RemoteAnswerInvalid if it is not a database."""
    file.seek(0)
    if file.read(len(_SQLITE)) != _SQLITE:
        raise RemoteAnswerInvalid("the response is not a database", orchestrator=name)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256")
    return BackupFile(name, path, file.tell(), digest.hexdigest())


def _kind(line: bytes) -> str:
    """Return the kind of record in a line."""
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        result = None
    kind = result.get("record") if isinstance(result, dict) else None
    if not isinstance(kind, str):
        raise RemoteAnswerInvalid("the response is not an export")
    return kind
