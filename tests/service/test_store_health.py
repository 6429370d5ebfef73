"""What the audit of a store counts, and what it leaves alone."""

from __future__ import annotations

import pytest
from working import put

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.errors import InvalidInput
from memgraph.model.access import HealthMeasure, HealthMetric, StoreHealth
from memgraph.model.enums import Sensitivity


def measured(found: StoreHealth, measure: HealthMetric) -> HealthMeasure:
    [one] = [each for each in found.measures if each.measure is measure]
    return one


def examples(found: StoreHealth, measure: HealthMetric) -> set[tuple[str, ...]]:
    return {each.memory_ids for each in measured(found, measure).examples}


def test_an_empty_store_is_healthy(orc: Orchestrator) -> None:
    found = orc.audit.measure(fail_on=["all"])
    assert (found.memories, found.ok, found.orchestrator) == (0, True, "orc-1")
    assert [each.measure for each in found.measures] == list(HealthMetric)
    assert {each.rate for each in found.measures} == {0.0}


def test_equal_and_nearly_equal_texts_are_counted_apart(orc: Orchestrator) -> None:
    fact = orc.remember("The lift holds ten people now.")
    same = orc.remember("The lift holds ten people now.", type="Observation")
    near = put(orc, "The lift holds now ten people!")
    orc.remember("The cellar door is red and stays locked.")
    orc.remember("The lift holds ten people now.", scope="project", scope_id="web")
    found = orc.audit.measure()
    assert found.memories == 4
    assert measured(found, HealthMetric.DUPLICATE).rate == 0.5
    assert examples(found, HealthMetric.DUPLICATE) == {(fact, same), (same, fact)}
    assert examples(found, HealthMetric.NEAR_DUPLICATE) == {(near, fact)}


def test_open_contradictions_count_both_sides_until_they_are_decided(orc: Orchestrator) -> None:
    one = put(orc, "The shop closes at six.")
    other = put(orc, "The shop closes at eight.")
    edge = orc.relate(one, "Contradicts", other)
    orc.remember("The cellar is dry.")
    found = measured(orc.audit.measure(), HealthMetric.CONTRADICTION)
    assert (found.count, found.of) == (2, 3)
    orc.contradictions.resolve(edge, winner=one, reason="asked")
    assert measured(orc.audit.measure(), HealthMetric.CONTRADICTION).count == 0


def test_what_stands_on_a_ground_that_fell_is_stale_until_it_is_back(orc: Orchestrator) -> None:
    ground = orc.remember("The road was wet at noon.")
    above = orc.remember("The bus was late for that.", derived_from=[ground])
    top = orc.remember("The meeting began at three.")
    orc.relate(top, "CausedBy", above)
    orc.remember("The cellar is dry.")
    assert measured(orc.audit.measure(), HealthMetric.STALE).count == 0
    orc.retract(ground, reason="it was dry")
    found = orc.audit.measure(fail_on=["stale=60%"])
    assert examples(found, HealthMetric.STALE) == {(above, ground), (top, ground)}
    assert (measured(found, HealthMetric.STALE).of, found.ok) == (3, False)
    orc.restore(ground, reason="it was wet")
    assert measured(orc.audit.measure(), HealthMetric.STALE).count == 0


def test_who_names_a_file_a_talk_or_a_ground_is_sourced(orc: Orchestrator) -> None:
    orc.remember("A person said this.")
    bare = orc.remember("Nobody knows where this comes from.", source={"captured_by": "system"})
    orc.remember("Said in a talk.", source={"conversation_id": "monday"})
    orc.remember("Made in a run.", source={"workflow_run_id": "run-1"})
    orc.remember("Drawn from another.", derived_from=[bare])
    found = orc.audit.measure()
    assert examples(found, HealthMetric.UNSOURCED) == {(bare,)}
    assert measured(found, HealthMetric.UNSOURCED).of == 5


def test_who_is_joined_to_what_is_hidden_alone_is_an_orphan(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    seen = orc.remember("it rained on the way home.")
    hidden = orc.remember("the road was wet at noon.", sensitivity=Sensitivity.RESTRICTED)
    everything = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    everything.relate(seen, "CausedBy", hidden)
    low = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.INTERNAL))
    assert examples(low.audit.measure(), HealthMetric.ORPHAN) == {(seen,)}
    assert examples(everything.audit.measure(), HealthMetric.ORPHAN) == set()


def test_an_orphan_has_no_edge_ground_dependent_or_entity(orc: Orchestrator) -> None:
    alone = orc.remember("it rained on the way home.")
    ground = orc.remember("the road was wet at noon.")
    orc.remember("the bus was late for that.", derived_from=[ground])
    one, other = orc.remember("it snowed later on."), orc.remember("it thawed at night.")
    orc.relate(one, "RelatedTo", other)
    assert examples(orc.audit.measure(), HealthMetric.ORPHAN) == {(alone,)}


def test_what_is_not_embedded_yet_is_counted_turns_too(orc: Orchestrator) -> None:
    orc.remember("The cellar is dry.")
    orc.save_episode("When do you close?", session_id="monday", source_role="user")
    waiting = measured(orc.audit.measure(), HealthMetric.UNEMBEDDED)
    assert (waiting.count, waiting.of) == (2, 2)
    orc.maintenance.embed_pending()
    assert measured(orc.audit.measure(), HealthMetric.UNEMBEDDED).count == 0


def test_a_rate_above_its_limit_fails_and_others_do_not(orc: Orchestrator) -> None:
    orc.remember("Nobody knows where this comes from.", source={"captured_by": "system"})
    found = orc.audit.measure(fail_on=["unsourced=50%", "duplicate"])
    assert not found.ok
    assert [each.measure for each in found.measures if each.failed] == [HealthMetric.UNSOURCED]
    assert measured(found, HealthMetric.DUPLICATE).limit == 0.0
    assert orc.audit.measure(fail_on=["unsourced=100%"]).ok


def test_what_the_viewer_does_not_see_is_not_counted(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    orc.remember("The lift holds ten people now.")
    orc.remember(
        "The lift holds ten people now.", type="Observation", sensitivity=Sensitivity.RESTRICTED
    )
    low = service.orchestrator(
        "orc-1", viewer=Viewer(clearance=Sensitivity.INTERNAL)
    ).audit.measure()
    assert (low.memories, measured(low, HealthMetric.DUPLICATE).count) == (1, 0)
    high = service.orchestrator(
        "orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED)
    ).audit.measure()
    assert (high.memories, measured(high, HealthMetric.DUPLICATE).count) == (2, 2)


def test_examples_are_bounded_and_counts_are_not(orc: Orchestrator) -> None:
    bare = {"source": {"captured_by": "system"}}
    orc.remember_many([{"content": f"note {number}", **bare} for number in range(7)])
    found = measured(orc.audit.measure(examples=3), HealthMetric.UNSOURCED)
    assert (found.count, len(found.examples)) == (7, 3)
    assert measured(orc.audit.measure(examples=0), HealthMetric.UNSOURCED).examples == ()
    with pytest.raises(InvalidInput):
        orc.audit.measure(examples=101)


def test_near_words_of_two_places_are_no_duplicates(
    service: MemoryService, orc: Orchestrator
) -> None:
    wide = service.orchestrator(orc.name, viewer=Viewer(project_ids=frozenset({"a", "b"})))
    wide.remember("The lift holds ten people now.", scope="project", scope_id="a")
    put(wide, "The lift holds now ten people!", scope="project", scope_id="b")
    assert measured(wide.audit.measure(), HealthMetric.NEAR_DUPLICATE).count == 0
    put(wide, "Now the lift holds ten people.", scope="project", scope_id="b")
    assert measured(wide.audit.measure(), HealthMetric.NEAR_DUPLICATE).count == 1
