"""Reasons of failed requests for people: the address and the cause, never a path or a key."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx

from memgraph.client.exchange import NoAnswer

# They end before anything is sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
# What OpenSSL says of an answer that does not begin as TLS does; the name is its version's.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})


def no_answer(error: httpx.HTTPError, url: httpx.URL) -> NoAnswer:
    """Return the description of a failure of the transport.

    Args:
        url: the server's.
    """
    sent = not isinstance(error, _NOT_SENT)
    failed = "gave no whole answer" if sent else "cannot be reached"
    place = f"{url.scheme}://{url.netloc.decode('ascii')}"
    return NoAnswer(why=type(error).__name__, sent=sent, text=f"{place} {failed}: {_reason(error)}")


def _reason(error: httpx.HTTPError) -> str:
    for cause in _causes(error):
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused; is the server running?"
        if isinstance(cause, socket.gaierror):
            return "no such host is known"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not believed ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NO_TLS:
                return "no TLS is spoken there; does the server speak plain http?"
            return f"TLS failed ({cause.reason})"
    if isinstance(error, httpx.TimeoutException):
        return f"no answer in time ({type(error).__name__})"
    return type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
