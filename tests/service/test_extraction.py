"""The optional extractor: off by default, judged by rules, a failure told and survived."""

from __future__ import annotations

from memgraph import Orchestrator
from memgraph.errors import ProviderRejected, ProviderUnavailable
from memgraph.operations.ingestion.extraction import MAX_FAILURES, propose
from memgraph.providers.fake import FakeCompletion

TEXT = "Ana: we go with Postgres.\nBen: fine, I will order the server.\n"


def answer(content: str, quote: str) -> dict[str, object]:
    item = {"text": content, "type": "Decision", "importance": 60, "turns": [1]}
    return {"add": [item | {"quote": quote}]}


def test_it_is_off_by_default(orc: Orchestrator) -> None:
    assert orc.ingestion.propose(TEXT) is None


def test_proposals_know_their_place_in_the_whole_text() -> None:
    text = "." * 90 + "\n" + TEXT
    model = FakeCompletion([{"add": []}, answer("They use Postgres.", "we go with Postgres")])
    told = propose(model, text, max_chars=100)
    assert [text[each.start : each.end] for each in told.accepted] == ["we go with Postgres"]
    assert len(model.calls) == 2


def test_a_model_that_fails_costs_its_piece_alone() -> None:
    model = FakeCompletion(
        [ProviderUnavailable("down"), answer("Ben orders a server.", "order the server")]
    )
    told = propose(model, TEXT, max_chars=40)
    assert (told.error_code, told.pieces, told.failed) == ("provider.unavailable", 2, 1)
    assert [TEXT[each.start : each.end] for each in told.accepted] == ["order the server"]


def test_a_provider_that_is_down_or_refuses_the_key_is_not_asked_for_every_piece() -> None:
    model = FakeCompletion()
    told = propose(model, "line\n" * 100, max_chars=10)
    assert (len(model.calls), told.failed) == (MAX_FAILURES, told.pieces)
    model = FakeCompletion([ProviderRejected("no such key")])
    told = propose(model, "line\n" * 100, max_chars=10)
    assert (len(model.calls), told.error_code) == (1, "provider.rejected")
