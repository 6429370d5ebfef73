"""The nightly enrichment: what models find is linked, once each, and a run can be broken off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from model_server import KEY, ModelServer
from page_models import settings
from pair_readers import reading

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import MS_PER_DAY
from memgraph.model.enums import JobState
from memgraph.model.jobs import JobReport
from memgraph.operations.life import enrichment as enriching
from memgraph.store.sqlite import engine

pytestmark = pytest.mark.usefixtures("asks_once")

NOW = 1_790_000_000_000
CANARY = "Zanzipool"
SPACY, MOST = "memory.entities.spacy_model", "memory.llm.max_sensitivity"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> str:
    import spacy

    made = spacy.blank("xx")  # no language's exceptions, which take long to load
    ruler: Any = made.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ORG", "pattern": each} for each in ("tidewater", CANARY)])
    folder = tmp_path_factory.mktemp("pipeline")
    made.to_disk(folder)
    return str(folder)


def opened_with(tmp_path: Path, **config: Any) -> MemoryService:
    return reading(tmp_path / "root", config=config, environ={"KEY": KEY})


@pytest.fixture
def asked(tmp_path: Path, server: ModelServer) -> Iterator[Orchestrator]:
    """An orchestrator that asks a model for names."""
    with opened_with(tmp_path, **settings(server)) as service:
        yield service.orchestrator("orc-1", create=True)


@pytest.fixture
def reads(tmp_path: Path, pipeline: str) -> Iterator[Orchestrator]:
    """An orchestrator that reads names by a pipeline."""
    with opened_with(tmp_path, **{SPACY: pipeline}) as service:
        yield service.orchestrator("orc-1", create=True)


def run(
    orc: Orchestrator,
    *,
    limit: int = 50,
    max_entities: int = 2,
    now_ms: int = NOW,
    **options: Any,
) -> JobReport:
    with (
        orc._service.opened("orc-1") as opened,
        patch.multiple(enriching, MAX_ENRICHED=limit, MAX_ENTITIES=max_entities),
    ):
        return enriching.enrich(opened, now_ms=now_ms, **options)


def names(orc: Orchestrator) -> dict[str, list[str]]:
    """Entity names by memory text."""
    with (
        orc._service.opened("orc-1") as opened,
        engine.inspected(opened.paths.database) as connection,
    ):
        found: dict[str, list[str]] = {}
        for content, name in connection.driver.execute(
            "SELECT m.content, e.name_key FROM memories m JOIN memory_entities l"
            " ON l.memory_pk = m.pk JOIN entities e ON e.pk = l.entity_pk ORDER BY m.pk, 2",
        ):
            found.setdefault(content, []).append(name)
    return found


def stamped(orc: Orchestrator) -> dict[str, Any]:
    return {each.content: each.attributes for each in orc.memories.list()}


def test_without_models_it_is_skipped_with_a_reason(orc: Orchestrator) -> None:
    orc.remember("the tidewater people called")
    report = run(orc)
    assert (report.state, report.reason) == (JobState.SKIPPED, "no_accurate_provider")
    assert stamped(orc) == {"the tidewater people called": {}}


def test_names_are_linked_once_and_survive_a_rebuild(reads: Orchestrator) -> None:
    kestrel = "the kestrel board hired tidewater"
    reads.remember("the tidewater people called", attributes={"mine": 1})
    reads.remember("it rained", kind="episode", session_id="s")
    # A name that was kept before is kept.
    reads.remember(kestrel, attributes={"enriched_names": [["kestrel board", "other"]]})
    report = run(reads)
    assert report.state is JobState.DONE
    found = {"enriched": 3, "links": 2, "withheld": 0, "gone": 0, "rejected": 0}
    assert report.counts == found
    name = ["tidewater", "organization"]
    assert stamped(reads) == {
        "the tidewater people called": {
            "mine": 1,
            "enriched_at": NOW,
            "enriched_names": [name],
        },
        "it rained": {"enriched_at": NOW},
        kestrel: {"enriched_at": NOW, "enriched_names": [["kestrel board", "other"], name]},
    }
    assert run(reads).counts["enriched"] == 0
    reads.maintenance.rebuild(["entities"])
    assert names(reads) == {
        "the tidewater people called": ["tidewater"],
        kestrel: ["kestrel board", "tidewater"],
    }
    assert reads.verify().ok


def test_the_limit_is_kept_and_the_next_run_goes_on(reads: Orchestrator) -> None:
    for number in range(5):
        reads.remember(f"note {number} of tidewater")
    seen: list[tuple[str, int, int]] = []
    report = run(reads, limit=2, progress=lambda *told: seen.append(told))
    assert report.counts["enriched"] == 2
    assert (seen[0], seen[-1]) == (("enrichment", 0, 2), ("enrichment", 2, 2))
    enriched = {f"note {number} of tidewater" for number in range(2)}
    assert {text for text, each in stamped(reads).items() if each} == enriched
    assert run(reads, stop=lambda: True).counts["enriched"] == 0
    assert run(reads, limit=9).counts["enriched"] == 3
    assert reads.verify().ok


def test_a_night_begins_where_the_last_one_ended_and_a_week_with_the_oldest_memory(
    reads: Orchestrator,
) -> None:
    old = reads.remember("tidewater was here")
    reads.retract(old, reason="wrong")
    reads.remember("tidewater called")
    for day, found in enumerate((1, 0, 1, 0, 0, 0, 0, 1, 0)):
        if day == 1:
            reads.restore(old, reason="it was")
        if day == 2:
            reads.remember("tidewater called again")
        assert run(reads, now_ms=NOW + day * MS_PER_DAY).counts["enriched"] == found, day
    # The clock had been ahead.
    reads.retract(old, reason="wrong")
    third = reads.remember("tidewater left")
    reads.retract(third, reason="wrong")
    assert run(reads, now_ms=NOW + 8 * MS_PER_DAY).counts["enriched"] == 0
    reads.remember("tidewater came back")
    assert run(reads, now_ms=NOW + 8 * MS_PER_DAY).counts["enriched"] == 1
    reads.restore(third, reason="it did")
    assert run(reads, now_ms=NOW).counts["enriched"] == 1
    assert reads.verify().ok


def test_memories_that_name_many_retracted_ones_and_reflections_are_passed_over(
    reads: Orchestrator,
) -> None:
    reads.remember("tidewater wrote to a@example.org, b@example.org and c@example.org")
    reads.remember("tidewater in a reflection", kind="reflection")
    reads.retract(reads.remember("tidewater was wrong"), reason="wrong")
    assert run(reads).counts["enriched"] == 0
    assert run(reads, max_entities=3).counts["enriched"] == 1, "another limit, another look"
    assert run(reads, max_entities=3).counts["enriched"] == 0


def says(*entities: tuple[str, str]) -> str:
    return json.dumps({"entities": [{"name": name, "type": kind} for name, kind in entities]})


def test_a_model_that_is_down_stops_the_run_and_loses_nothing(
    asked: Orchestrator, server: ModelServer
) -> None:
    texts = [f"tidewater {number}" for number in range(enriching.BATCH + 2)]
    for text in texts:
        asked.remember(text)
    good = server.writes(says(("tidewater", "project")))
    server.behave(good, server.fails(503))
    report = run(asked)
    assert (report.state, report.error_code) == (JobState.FAILED, "provider.unavailable")
    assert report.counts["enriched"] == enriching.BATCH
    assert len(server.requests) == 2, "nobody is asked once the model is down"
    assert {key for key, each in stamped(asked).items() if each} == set(texts[: enriching.BATCH])
    server.behave(good)
    assert run(asked).counts["enriched"] == 2
    assert set(names(asked)) == set(texts)
    assert asked.verify().ok


def test_a_text_that_is_refused_holds_up_no_other(asked: Orchestrator, server: ModelServer) -> None:
    ids = [asked.remember(f"tidewater {word}") for word in ("one", "two", "three", "four")]
    good = server.writes(says(("tidewater", "project")))
    # All four together are refused, then the second one alone.
    server.behave(server.fails(400), good, server.fails(400), good)
    report = run(asked)
    assert (report.state, report.counts["enriched"]) == (JobState.DONE, 4)
    assert [(each.code, each.where) for each in report.rejected] == [("provider.rejected", ids[1])]
    # The name that the others told is known by then.
    assert set(names(asked)) == {asked.get(each).content for each in ids}
    assert all(stamped(asked).values())
    assert run(asked).counts["enriched"] == 0
    assert asked.verify().ok


def test_texts_refused_in_a_row_end_the_run_and_the_next_goes_on(
    asked: Orchestrator, server: ModelServer
) -> None:
    for number in range(6):
        asked.remember(f"tidewater {number}")
    server.behave(server.fails(422))
    report = run(asked)
    assert (report.state, report.error_code) == (JobState.FAILED, "provider.rejected")
    assert len(server.requests) == 4
    assert sum(bool(each) for each in stamped(asked).values()) == 2
    server.behave(*[server.fails(422)] * 2, server.writes(says(("tidewater", "project"))))
    assert run(asked).state is JobState.DONE
    assert len(names(asked)) == 3


def test_a_key_or_model_that_is_refused_costs_no_memory(
    asked: Orchestrator, server: ModelServer
) -> None:
    asked.remember("tidewater one")
    asked.remember("tidewater two")
    for number, status in enumerate((401, 403, 404), 1):
        server.behave(server.fails(status))
        report = run(asked)
        assert (report.state, report.error_code) == (JobState.FAILED, "provider.rejected")
        assert len(server.requests) == number
    assert not any(stamped(asked).values())


def test_what_was_withheld_comes_again_when_the_limit_is_raised(
    tmp_path: Path, server: ModelServer
) -> None:
    server.behave(server.writes(says(("tidewater", "project"))))
    viewer = Viewer(clearance=Sensitivity.RESTRICTED)
    with opened_with(tmp_path, **settings(server)) as service:
        orc = service.orchestrator("orc-1", create=True, viewer=viewer)
        orc.remember("tidewater hired", sensitivity="Confidential")
        assert run(orc).counts["withheld"] == 1
    with opened_with(tmp_path, **settings(server), **{MOST: "Confidential"}) as service:
        orc = service.orchestrator("orc-1")
        assert [run(orc).counts["enriched"] for _ in range(2)] == [1, 0]


def test_nonsense_is_rejected_by_item_and_changes_nothing_else(
    asked: Orchestrator, server: ModelServer
) -> None:
    for number, answer in enumerate(("no", says(("Nowhere", "location")))):
        memory_id = asked.remember(f"tidewater {number}")
        server.behave(server.writes(answer))
        report = run(asked)
        assert report.state is JobState.DONE
        assert [each.where for each in report.rejected] == [memory_id]
        assert report.counts["links"] == 0
    assert names(asked) == {}
    assert asked.verify().ok


def test_a_pipeline_may_read_what_a_model_may_not(
    tmp_path: Path, server: ModelServer, pipeline: str
) -> None:
    with opened_with(tmp_path, **settings(server), **{SPACY: pipeline}) as service:
        orc = service.orchestrator("orc-1", create=True)
        secret = f"the {CANARY} papers"
        orc.remember(secret, sensitivity="Confidential")
        server.behave(server.writes(says()))
        assert run(orc).counts["withheld"] == 0
        assert names(orc)[secret] == [CANARY.casefold()]
        assert server.requests == []


def test_what_was_taken_back_while_the_model_thought_stays_as_it_is(
    asked: Orchestrator, server: ModelServer
) -> None:
    memory_id = asked.remember("tidewater one")
    answer = server.writes(says(("tidewater", "project")))

    def thinking(request: dict[str, Any]) -> Any:
        asked.retract(memory_id, reason="wrong")
        return answer(request)

    server.behave(thinking)
    report = run(asked)
    assert (report.counts["gone"], report.counts["enriched"]) == (1, 0)
    assert names(asked) == {}
    assert asked.get(memory_id).attributes == {}


def test_attributes_that_only_look_like_names_name_nothing(orc: Orchestrator) -> None:
    shapes: list[Any] = ["[oops", [1, 2], {"a": 1}, [None] * 99]
    for forged in (*shapes, [["Vellmark", "location"]], [["tidewater", "wizard"]]):
        said = {"enriched_names": forged, "enriched_at": 5}
        orc.remember(f"tidewater {len(orc.memories.list())}", attributes=said)
    orc.maintenance.rebuild(["entities"])
    assert names(orc) == {}
    assert orc.verify().ok


def test_a_pipeline_can_name_entities_on_every_write(tmp_path: Path, pipeline: str) -> None:
    fast = {SPACY: pipeline, "memory.entities.fast": ["regex", "spacy"]}
    with opened_with(tmp_path, **fast) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("the tidewater people met Caroline Smith")
        found = {each.canonical_name: each.type.value for each in orc.entities.list()}
        assert found == {"tidewater": "organization", "Caroline Smith": "person"}
        assert orc.accurate_ner_available
        assert service.health("orc-1")["degraded"] == []


def test_a_model_mends_the_type_that_rules_gave(tmp_path: Path, server: ModelServer) -> None:
    accurate = {"memory.entities.accurate": ["regex", "llm"]}
    with opened_with(tmp_path, **settings(server), **accurate) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("A new song by the Velmar Ocean came out.")
        before = orc.entities.get("Velmar Ocean")
        assert before.type == "location"
        server.behave(server.writes(says(("Velmar Ocean", "person"))))
        orc.jobs.run("enrichment")
        orc.remember("A new song by the Velmar Ocean is long.")
        for _ in range(2):
            mended = orc.entities.get("Velmar Ocean")
            assert (mended.type, mended.entity_id) == ("person", before.entity_id)
            assert (mended.mention_count, mended.candidates) == (2, ())
            assert orc.verify().findings == []
            orc.maintenance.rebuild(["entities"])
