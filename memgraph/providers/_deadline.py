"""A hard time limit for a call, also when the other side sends a byte now and then.

The timeouts of HTTP clients begin again with every byte, so a slow server is never late. Here the
caller waits for the limit only; the abandoned call ends by itself.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Final, TypeVar

from memgraph.errors import ProviderUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

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
