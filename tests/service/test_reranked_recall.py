"""Recall with a reranker, down to a real server: what a good one mends, what a bad one cannot."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import KEY, ModelServer
from working import put

from memgraph import MemoryService, Orchestrator, Sensitivity
from memgraph.clock import FixedClock
from memgraph.errors import (
    AccessDenied,
    MemgraphError,
    ProviderAnswerInvalid,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.ids import CountingIds
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.operations.read import recall
from memgraph.providers import _litellm, reranking
from memgraph.providers.fake import FakeEmbedding, FakeReranking
from memgraph.retrieval.scores import PAIR
from memgraph.rules.scope import Viewer
from memgraph.store import sqlite

pytestmark = pytest.mark.usefixtures("asks_once")

COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink")
QUESTION = "which house colour?"
ANSWER = "A house: grey."

Start = Callable[..., Orchestrator]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Houses in eight colours, one fact beside them; the same moment for all."""
    with running(tmp_path) as service:
        orc = service.orchestrator("o", create=True)
        for colour in COLOURS:
            put(orc, f"A house: {colour}.")
        put(orc, "Nothing about a home.")
        orc.maintenance.embed_pending()
    return tmp_path


def running(root: Path, **options: Any) -> MemoryService:
    given = {
        "clock": FixedClock(),
        "environ": {"RERANK_KEY": KEY},
        "background": False,
        "embedding": FakeEmbedding(16),
        "config": {},
    }
    return MemoryService(root, **(given | options))


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    """A handle on the houses, with a reranker or settings of one."""
    services = []

    def begin(viewer: Viewer | None = None, **options: Any) -> Orchestrator:
        service = running(root, **options)
        services.append(service)
        return service.orchestrator("o", **({} if viewer is None else {"viewer": viewer}))

    yield begin
    for service in services:
        service.close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer()
    yield made
    made.close()


def remote(server: ModelServer, **changed: Any) -> dict[str, Any]:
    """Settings that point at the loopback server."""
    chat = changed.get("mode") == "chat"
    group = {
        "provider": "litellm/openai/any" if chat else "litellm/jina_ai/any",
        "api_base": server.url,
        "api_key_from": "RERANK_KEY",
    }
    return {f"memory.reranker.{key}": value for key, value in (group | changed).items()}


def likes_grey(_query: str, text: str) -> float:
    return float("grey" in text)


def plain(bundle: Bundle) -> Bundle:
    """The answer without what tells one recall from the next.

    How far a side of a pair was lifted depends on how many were chosen; the order is compared.
    """
    items = [
        item.model_copy(
            update={
                "score": round(item.score / item.modifiers.get(PAIR, 1.0), 9),
                "modifiers": {k: round(v, 9) for k, v in item.modifiers.items() if k != PAIR},
            }
        )
        for item in bundle.items
    ]
    return bundle.model_copy(update={"receipt_id": "", "degraded": (), "items": tuple(items)})


def contents(bundle: Bundle) -> list[str]:
    return [item.memory.content for item in bundle.items]


def codes(bundle: Bundle) -> list[str]:
    return [each.code for each in bundle.degraded]


def last_first(_query: str, texts: Sequence[str]) -> list[int]:
    return list(range(len(texts)))[::-1]


@pytest.mark.parametrize("mode", ["rerank", "chat"])
def test_a_good_order_lifts_the_answer(
    start: Start, server: ModelServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "RERANKER_WEIGHT", 100.0)
    before = contents(start().recall(QUESTION))
    assert before.index(ANSWER) > 0
    if mode == "chat":
        # The lines of the prompt come in recall's own order, all others keep theirs.
        grey = before.index(ANSWER) + 1
        rest = [number for number in range(1, len(before) + 1) if number != grey]
        server.behave(server.writes(str([grey, *rest])))
    else:
        server.behave(server.reranks(likes_grey))
    found = start(config=remote(server, mode=mode)).recall(QUESTION)
    assert contents(found)[0] == ANSWER
    assert found.items[0].legs["rerank"] == 1
    assert sorted(contents(found)) == sorted(before)
    assert codes(found) == []
    assert len(server.requests) == 1


def test_the_best_few_are_sent_and_each_is_cut(
    start: Start, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "RERANKED", 3)
    monkeypatch.setattr(recall, "RERANKED_CHARS", 50)
    server.behave(server.reranks(likes_grey))
    orc = start(config=remote(server))
    long_question = QUESTION + " house" * 100
    first = contents(start().recall(long_question))
    found = orc.recall(long_question)
    assert server.requests[0]["query"] == long_question[:50]
    assert server.requests[0]["documents"] == first[:3]
    assert sum("rerank" in item.legs for item in found.items) == 3
    assert sorted(contents(found)) == sorted(first)


BAD: dict[str, tuple[Callable[[ModelServer], Any], str]] = {
    "500": (lambda server: server.fails(500), "rerank.failed"),
    "401": (lambda server: server.fails(401), "rerank.failed"),
    "hang": (lambda server: server.hangs, "rerank.timeout"),
    "dribble": (lambda server: server.dribbles, "rerank.timeout"),
    "html": (lambda server: server.says(200, f"<html>{KEY}"), "rerank.answer_invalid"),
    "cut": (lambda server: server.says(200, '{"results": [{"ind'), "rerank.answer_invalid"),
    "none": (lambda server: server.rerank_results([]), "rerank.answer_invalid"),
    "flood": (lambda server: server.floods, "rerank.answer_invalid"),
    "outside": (
        lambda server: server.rerank_results([{"index": 99, "relevance_score": 1.0}]),
        "rerank.answer_invalid",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_server_costs_nothing_but_a_notice(
    start: Start,
    server: ModelServer,
    root: Path,
    kind: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _litellm.load()
    behaviour, code = BAD[kind]
    server.behave(behaviour(server))
    asked = {"top_n": 4, "token_budget": 20}
    expected = start().recall(QUESTION, **asked)
    late = code == "rerank.timeout"
    monkeypatch.setitem(reranking.DEFAULTS, "timeout_s", 0.4 if late else 60.0)
    orc = start(config=remote(server))
    begun = time.monotonic()
    found = orc.recall(QUESTION, **asked)
    assert not late or time.monotonic() - begun < 10.0
    assert plain(found).model_dump_json() == plain(expected).model_dump_json()
    assert codes(found) == [*codes(expected), code]
    # A busy machine may not even get to asking before the time is over.
    assert late or len(server.requests) == 1
    out, err = capfd.readouterr()
    log = "".join(path.read_text() for path in root.rglob("*.log"))
    assert '"rerank"' in log
    assert not [text for text in (KEY, "house") if text in log + out + err + str(found.degraded)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderUnavailable("down"), "rerank.failed"),
        (ProviderUnavailable("late", reason="timeout"), "rerank.timeout"),
        (ProviderRejected("no"), "rerank.failed"),
        (ProviderAnswerInvalid("what"), "rerank.answer_invalid"),
    ],
)
def test_health_tells_of_a_reranker_that_fails(
    start: Start, error: MemgraphError, code: str
) -> None:
    fake = FakeReranking(fail_with=error)
    orc = start(reranker=fake)
    service = orc._service
    assert service.health("o")["degraded"] == []
    assert codes(orc.recall(QUESTION)) == [code]
    assert service.health("o")["degraded"] == ["reranker.failing"]
    fake.fail_with = None
    assert codes(orc.recall(QUESTION)) == []
    assert service.health("o")["degraded"] == []


def test_no_snapshot_is_open_while_the_model_thinks(start: Start) -> None:
    """A write that lands meanwhile can be checkpointed: no reader pins the log."""
    writer = start()
    checkpointed = []

    def think(_query: str, texts: Sequence[str]) -> list[int]:
        writer.remember("Said while the model thinks.")
        path = writer._service.paths("o").database
        with closing(sqlite.connect(path, busy_timeout_ms=0)) as connection:
            [busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        checkpointed.append(busy)
        return last_first(_query, texts)

    found = start(reranker=FakeReranking(think)).recall(QUESTION)
    assert codes(found) == []
    assert checkpointed == [0]


def test_the_query_is_embedded_once_whatever_happens(start: Start) -> None:
    embedding = FakeEmbedding(16)
    orc = start(embedding=embedding, reranker=FakeReranking(fail_with=ProviderUnavailable("x")))
    orc.recall(QUESTION)
    assert embedding.calls == [1]
    failing = FakeEmbedding(16, fail_with=ProviderUnavailable("down"))
    orc = start(embedding=failing, reranker=FakeReranking(fail_with=ProviderUnavailable("x")))
    assert codes(orc.recall(QUESTION)) == ["vector.provider_failed", "rerank.failed"]
    assert failing.calls == [1]


def test_filters_alone_and_lone_memories_are_not_sent(start: Start) -> None:
    fake = FakeReranking(last_first)
    orc = start(reranker=fake)
    for request in ({"types": ["Fact"]}, {"query": "!?", "types": ["Fact"]}):
        assert plain(orc.recall(**request)) == plain(start().recall(**request))
    assert plain(orc.recall("grey", tags=["none"])) == plain(start().recall("grey", tags=["none"]))
    assert fake.calls == []


def test_what_is_too_sensitive_is_not_sent_and_stays_where_it_is(start: Start) -> None:
    cleared = Viewer(clearance=Sensitivity.RESTRICTED)
    writer = start(viewer=cleared)
    writer.remember("The house colour is a secret.", sensitivity="Confidential")
    writer.maintenance.embed_pending()
    expected = contents(start(viewer=cleared).recall(QUESTION))
    place = expected.index("The house colour is a secret.")
    fake = FakeReranking(last_first)
    found = start(viewer=cleared, reranker=fake).recall(QUESTION)
    assert contents(found)[place] == "The house colour is a secret."
    assert "secret" not in str(fake.calls)
    assert codes(found) == ["rerank.withheld"]
    allowed = {"memory.reranker.max_sensitivity": "Confidential"}
    told = start(viewer=cleared, reranker=fake, config=allowed).recall(QUESTION)
    assert "secret" in str(fake.calls[-1])
    assert codes(told) == []


def test_the_viewer_and_the_filters_hold_for_what_is_sent(start: Start) -> None:
    start().remember("The house colour of p.", scope="project", scope_id="p", tags=["t"])
    fake = FakeReranking(last_first)
    orc = start(reranker=fake)
    orc.recall(QUESTION)
    assert "of p" not in str(fake.calls)
    with pytest.raises(AccessDenied):
        orc.recall(QUESTION, project_ids=["p"])
    assert len(fake.calls) == 1


def test_both_sides_of_a_contradiction_are_handed_out(start: Start) -> None:
    clock = FixedClock()
    clock.advance(days=1)
    orc = start(clock=clock)
    one = orc.recall(QUESTION).ids[-1]
    other = put(orc, "Its walls were painted over in violet.")
    orc.relate(one, "Contradicts", other)
    liked = orc.get(one).content
    assert one not in orc.recall(QUESTION, top_n=4).ids
    fake = FakeReranking(lambda query, texts: [list(texts).index(liked)])
    found = start(reranker=fake, clock=clock).recall(QUESTION, top_n=4)
    assert found.ids[:2] == (other, one)
    assert [each.contradicted_by for each in found.items[:2]] == [(one,), (other,)]
    assert {edge.to_id for edge in found.edges} == {other}


@pytest.fixture(scope="module")
def tangled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Orchestrator, ...]]:
    """Two handles on memories full of edges: without a reranker, and with one."""
    root = tmp_path_factory.mktemp("tangled")
    with (
        running(root, ids=CountingIds()) as one,
        running(root, reranker=FakeReranking(last_first)) as other,
    ):
        orc = one.orchestrator("o", create=True)
        ids = [put(orc, f"House {number} is {COLOURS[number % 8]}.") for number in range(24)]
        ids += [put(orc, f"A wall of number {number} was changed.") for number in range(6)]
        for place, each in enumerate((24, 25, 3, 9)):
            orc.relate(ids[place], "Contradicts", ids[each])
        for place, each in enumerate((26, 27, 28)):
            orc.relate(ids[each], "Updates", ids[5], partial=True)
            orc.relate(ids[each], "RelatedTo", ids[place + 10])
        orc.relate(ids[29], "Updates", ids[7])
        orc.relate(ids[6], "CausedBy", ids[7])
        orc.maintenance.embed_pending()
        yield orc, other.orchestrator("o")


@pytest.mark.parametrize("top_n", [1, 2, 3, 5, 8, 13, 30])
@pytest.mark.parametrize("token_budget", [None, 12, 40])
@pytest.mark.parametrize("query", ["Which house is red?", "house 5", "wall number"])
def test_a_leg_without_weight_changes_nothing(
    tangled: tuple[Orchestrator, ...], query: str, token_budget: int | None, top_n: int
) -> None:
    """What is chosen out of a wide answer is what recall chooses itself."""
    without, reranked = tangled
    for each in tangled:
        # Receipts count accesses: none is to be written between the two recalls.
        with each._service.opened("o") as opened:
            opened.receipts.flush()
    expected = without.recall(query, top_n=top_n, token_budget=token_budget)
    with patch.multiple(recall, RERANKER_WEIGHT=0.0, RERANKED=6):
        found = reranked.recall(query, top_n=top_n, token_budget=token_budget)
    assert codes(found) == codes(expected)
    assert any("rerank" in item.legs for item in found.items)
    items = [
        item.model_copy(
            update={"legs": {leg: rank for leg, rank in item.legs.items() if leg != "rerank"}}
        )
        for item in found.items
    ]
    assert plain(found.model_copy(update={"items": tuple(items)})) == plain(expected)


def test_the_receipt_holds_what_was_handed_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "RERANKER_WEIGHT", 100.0)
    orc = start(reranker=FakeReranking(last_first))
    found = orc.recall(QUESTION, top_n=3)
    with orc._service.opened("o") as opened:
        opened.receipts.flush()
        with opened.database.read() as connection:
            kept = connection.exec_driver_sql(
                "SELECT memory_id, json_extract(explanation, '$.legs.rerank') FROM recall_items"
                " WHERE recall_id = ? ORDER BY rank",
                (found.receipt_id,),
            ).all()
            [(request,)] = connection.exec_driver_sql("SELECT request FROM recalls").all()
    assert [one for one, _ in kept] == list(found.ids)
    assert [rank for _, rank in kept] == [item.legs["rerank"] for item in found.items]
    assert request == '{"top_n": 3}'


@given(
    st.lists(st.integers(-2, 30), max_size=40)
    | st.permutations(range(9))
    | st.lists(st.none() | st.text() | st.booleans() | st.floats(), max_size=5)
)
def test_no_answer_loses_a_candidate(houses: Orchestrator, answer: list[Any]) -> None:
    fake = houses._service._reranker
    assert isinstance(fake, FakeReranking)
    fake._order = lambda query, texts: answer
    request = RecallRequest(query=QUESTION)
    found = houses.recall(request)
    assert sorted(contents(found)) == sorted([f"A house: {one}." for one in COLOURS])
    usable = [place for place in answer if type(place) is int and 0 <= place < len(COLOURS)]
    junk = not all(type(place) is int for place in answer)
    assert codes(found) == (["rerank.answer_invalid"] if junk or not usable else [])


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrator]:
    with running(tmp_path_factory.mktemp("houses"), reranker=FakeReranking()) as service:
        orc = service.orchestrator("o", create=True)
        for colour in COLOURS:
            put(orc, f"A house: {colour}.")
        orc.maintenance.embed_pending()
        yield orc


def test_without_a_reranker_nothing_of_it_is_loaded(root: Path) -> None:
    script = (
        "import sys; from memgraph import MemoryService\n"
        f"with MemoryService({str(root)!r}, environ={{}}, background=False) as service:\n"
        "    assert service.orchestrator('o').recall('house').items\n"
        "    print([m for m in sys.modules if 'rerank' in m or m == 'litellm'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
