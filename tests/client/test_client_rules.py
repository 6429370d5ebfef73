"""When a call is sent again, what it waits for, and what becomes of answers that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

import httpx
import pytest
from hypothesis import given, strategies as st

from memgraph import errors
from memgraph.client import AsyncClient, Client
from memgraph.client.orchestrator import MAX_BYTES, batches
from memgraph.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseUnreachable,
    InvalidInput,
    MemgraphError,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    RemoteAnswerInvalid,
    RemoteUnavailable,
    RequestTimeout,
)
from memgraph.model.remote import MAX_BATCH
from memgraph.model.values import MemoryInput

SECRET = "mgk_000000000000_this-is-the-secret-of-a-key-0123456789abcdefghi"
URL = "http://127.0.0.1:8420"
Reply = httpx.Response | Exception
PROBLEM = {"content-type": "application/problem+json"}


def problem(
    kind: type[MemgraphError], status: int, headers: dict[str, str] | None = None, **details: Any
) -> httpx.Response:
    told = {"type": "about:blank", "code": kind.code, "detail": "so it is", "details": details}
    return httpx.Response(status, content=json.dumps(told), headers=PROBLEM | (headers or {}))


def stored() -> httpx.Response:
    return httpx.Response(201, json={"memory_id": "fact_1"})


class Replies:
    """Answers in the place of a network, one for each request; keeps what was sent."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.sent: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        # A response is read once: each is sent as a new one.
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def said(replies: Replies, say: Callable[[Any], Any], **options: Any) -> Any:
    """What a word gives when the network answers so."""
    transport = httpx.MockTransport(replies)
    with Client(URL, key=SECRET, transport=transport, **options) as client:
        client._server.pause = replies.pauses.append
        return say(client.orchestrator("orc-1"))


def remember(orc: Any) -> Any:
    return orc.remember("The gate is green.")


def run(orc: Any) -> Any:
    return orc.jobs.run("decay")


def counts(orc: Any) -> Any:
    return orc.memories.counts()


def test_a_write_is_sent_again_with_the_same_body() -> None:
    for kind in (DatabaseBusy, DatabaseUnreachable, OutcomeUnknown):
        replies = Replies([httpx.ReadTimeout("x"), problem(kind, 503), stored()])
        assert said(replies, remember) == "fact_1"
        assert len({each.content for each in replies.sent}) == 1
        assert [0.1 <= each <= 0.4 for each in replies.pauses] == [True, True]


def test_a_turn_is_sent_again_only_if_it_has_an_id() -> None:
    turn = {"content": "Hello.", "session_id": "s", "source_role": "user"}
    outcomes = httpx.Response(200, json={"outcomes": [{"outcome": "stored", "memory_id": "ep_1"}]})
    ways: list[tuple[Callable[..., Any], httpx.Response]] = [
        (lambda orc, **more: orc.save_episode(**turn, **more), stored()),
        (lambda orc, **more: orc.remember(**turn, kind="episode", **more), stored()),
        (lambda orc, **more: orc.save_episodes([turn | more]), outcomes),
        (lambda orc, **more: orc.remember_many([turn | more | {"kind": "episode"}]), outcomes),
    ]
    for say, answer in ways:
        replies = Replies([httpx.ReadError("x"), answer])
        said(replies, partial(say, turn_id="t-1"))
        assert len(replies.sent) == 2
        lost = Replies([httpx.ReadError("x"), answer])
        with pytest.raises(RemoteUnavailable):
            said(lost, say)
        unsent = Replies([httpx.ConnectError("x"), answer])
        said(unsent, say)
        assert len(unsent.sent) == 2


def test_what_may_have_been_done_and_cannot_be_told_is_not_sent_again() -> None:
    for reply in (httpx.ReadTimeout("x"), problem(RequestTimeout, 504), httpx.Response(502)):
        replies = Replies([reply, httpx.Response(200, json={})])
        with pytest.raises((RemoteUnavailable, RequestTimeout)):
            said(replies, run)
        assert len(replies.sent) == 1
    for reply in (httpx.ConnectError("x"), problem(errors.ServerBusy, 503), httpx.Response(429)):
        replies = Replies([reply, problem(NotFound, 404)])
        with pytest.raises(NotFound):
            said(replies, run)
        assert len(replies.sent) == 2


PARTLY_NUMBERED = [
    {"content": "Hello.", "source_role": "user", "turn_id": "t-1"},
    {"content": "Good day.", "source_role": "assistant"},
]


AGAIN: list[tuple[str, dict[str, Any], bool]] = [
    ("erasure.erase", {"text": "five", "reason": "asked", "dry_run": False}, False),
    ("erasure.erase", {"text": "five", "reason": "asked"}, True),
    ("sources.retract", {"path": "a.md", "reason": "asked", "dry_run": False}, False),
    ("sources.retract", {"path": "a.md", "reason": "asked"}, True),
    ("turns.on_message", {"content": "Hello."}, False),
    ("turns.on_message", {"content": "Hello.", "turn_id": "t-1"}, True),
    ("turns.on_transcript", {"turns": PARTLY_NUMBERED}, False),
    ("turns.on_transcript", {"turns": PARTLY_NUMBERED[:1]}, True),
]


def test_a_dry_run_and_a_numbered_turn_are_sent_again_and_what_must_not_happen_twice_is_not() -> (
    None
):
    def say(orc: Any, method: str, fields: dict[str, Any]) -> Any:
        call = attrgetter(method)(orc)
        is_turn = method.startswith("turns")
        return call(fields | {"conversation_id": "s"}) if is_turn else call(**fields)

    for method, fields, again in AGAIN:
        replies = Replies([httpx.ReadError("x"), problem(NotFound, 404)])
        with pytest.raises(NotFound if again else RemoteUnavailable):
            said(replies, partial(say, method=method, fields=fields))
        assert len(replies.sent) == 1 + again, (method, fields)


def test_retry_after_is_waited_for_unless_it_is_too_long() -> None:
    soon = problem(RateLimited, 429, {"retry-after": "7"}, retry_after_s=6.5)
    replies = Replies([soon, stored()])
    assert said(replies, remember) == "fact_1"
    assert replies.pauses == [7.0]
    late = problem(RateLimited, 429, {"retry-after": "31"})
    with pytest.raises(RateLimited) as refused:
        said(Replies([late]), remember)
    assert refused.value.details == {"retry_after_s": 31.0}
    dated = problem(RateLimited, 429, {"retry-after": "Sat, 31 Jan 2026 08:30:00 GMT"})
    with pytest.raises(RateLimited) as refused:
        said(Replies([dated]), remember, retries=0)
    assert refused.value.details == {}


def test_what_does_not_pass_is_not_sent_again() -> None:
    for kind, status in ((DatabaseCorrupt, 503), (NotFound, 404)):
        replies = Replies([problem(kind, status, memory_ids=["fact_1"])])
        with pytest.raises(kind) as refused:
            said(replies, remember)
        assert type(refused.value) is kind
        assert (refused.value.message, refused.value.details) == (
            "so it is",
            {"memory_ids": ["fact_1"]},
        )


def test_it_gives_up_after_so_many() -> None:
    replies = Replies([httpx.ConnectError("x")] * 4)
    with pytest.raises(RemoteUnavailable) as refused:
        said(replies, remember, retries=3)
    assert (len(replies.sent), len(replies.pauses)) == (4, 3)
    assert refused.value.details == {"cause": "ConnectError"}
    assert refused.value.__cause__ is refused.value.__context__ is None


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(200, html="<h1>Welcome to nginx</h1>"),
        httpx.Response(201, content=b'{"memory_id": "fact_1"'),
        httpx.Response(201, json={"id": 3}),
        httpx.Response(204),
        httpx.Response(301, headers={"location": "https://elsewhere.example/"}),
        httpx.Response(500, text="oops"),
        httpx.Response(418, json={"code": "tea.pot", "detail": "short"}, headers=PROBLEM),
        problem(errors.RequestRefused, 404),
    ],
    ids=lambda each: f"{each.status_code} {each.content[:12]!r}",
)
def test_what_is_no_answer_of_memgraph_is_told_so(reply: httpx.Response) -> None:
    replies = Replies([reply])
    with pytest.raises(RemoteAnswerInvalid):
        said(replies, remember)
    assert len(replies.sent) == 1
    assert [str(each.url) for each in replies.sent] == [f"{URL}/v1/orchestrators/orc-1/memories"]


def test_a_later_version_may_tell_more() -> None:
    page = httpx.Response(200, json={"items": [], "next_cursor": None, "weather": "fair"})
    assert said(Replies([page]), lambda orc: orc.sessions.list()) == []


def test_names_of_entities_are_in_no_address() -> None:
    replies = Replies([problem(NotFound, 404)])
    with pytest.raises(NotFound):
        said(replies, lambda orc: orc.entities.get("Nora Quill"))
    [sent] = replies.sent
    assert (sent.method, sent.url.path) == ("POST", "/v1/orchestrators/orc-1/entities/info")
    assert not sent.url.query
    assert b"Nora Quill" in sent.content


def test_what_cannot_be_waited_for_is_refused() -> None:
    for name, value in (("retries", -1), ("retries", 1.5), ("timeout_s", float("nan"))):
        with pytest.raises(InvalidInput, match=name):
            AsyncClient(URL, **{name: value})


def test_every_error_of_the_library_comes_back_as_itself() -> None:
    waiting, seen = [MemgraphError], 0
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if kind.__module__ != errors.__name__ or kind is errors.RequestRefused:
            continue
        with pytest.raises(kind) as refused:
            said(Replies([problem(kind, 418, n=1)]), remember, retries=0)
        assert type(refused.value) is kind
        assert refused.value.as_dict() == {
            "code": kind.code,
            "message": "so it is",
            "details": {"n": 1},
        }
        seen += 1
    assert seen > 40


CODES = st.sampled_from([each.code for each in MemgraphError.__subclasses__()]) | st.text()
TOLD = st.fixed_dictionaries(
    {}, optional={"code": CODES, "detail": st.text(), "details": st.none() | st.just({"a": 1})}
)
KINDS = st.sampled_from(["application/problem+json", "application/json; charset=utf-8", "", "x/y"])
ANSWERS = st.builds(
    lambda status, kind, after, body: httpx.Response(
        status, headers={"content-type": kind, "retry-after": after}, content=body
    ),
    st.integers(100, 599),
    KINDS,
    st.integers(0, 40).map(str) | st.text(st.characters(codec="ascii", categories=["L", "N"])),
    st.binary(max_size=40) | TOLD.map(lambda each: json.dumps(each).encode()),
)
BROKEN = st.sampled_from([httpx.ReadError("x"), httpx.ConnectError("x")])


@given(
    st.lists(ANSWERS | BROKEN, min_size=4, max_size=4),
    st.sampled_from([remember, run]),
    st.integers(0, 3),
)
def test_any_course_ends_in_an_answer_or_an_error_of_the_library(
    came: list[Reply], say: Callable[[Any], Any], retries: int
) -> None:
    """Whatever comes, of a server, a proxy or a stranger."""
    replies = Replies(came)
    with suppress(MemgraphError):
        said(replies, say, retries=retries)
    sent = came[: len(replies.sent)]
    assert 1 <= len(sent) <= retries + 1
    assert all(0 <= each <= 30 for each in replies.pauses)
    if say is run:
        assert not any(isinstance(each, httpx.ReadError) for each in sent[:-1])
    # Nothing is sent after what is good.
    assert not any(isinstance(each, httpx.Response) and each.is_success for each in sent[:-1])


@pytest.mark.parametrize(("size", "many", "sent"), [(1, 2_500, 3), (30_000, 100, 4)])
def test_batches_are_of_bounded_length_and_size(size: int, many: int, sent: int) -> None:
    items = [MemoryInput(content=f"{each}" + "ü" * size) for each in range(many)]
    found = list(batches(iter(items)))
    assert [each for batch in found for each in batch] == items
    assert max(map(len, found)) <= MAX_BATCH
    weights = [sum(len(each.content.encode()) for each in some) for some in found]
    assert max(weights) < MAX_BYTES
    assert len(found) == sent
