"""The weekly job of reflection on a real database: when, over what, for whom, and what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from processes import Process
from working import put

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import FixedClock, iso
from memgraph.errors import ProviderUnavailable
from memgraph.model.enums import JobState, MemoryKind, MemoryType, Sensitivity
from memgraph.model.jobs import JobReport
from memgraph.model.values import Memory
from memgraph.operations.life import reflection as reflecting
from memgraph.operations.life.models import LanguageModel
from memgraph.providers.fake import FakeCompletion
from memgraph.providers.usage import TOKENS_PER_RUN, report_tokens

pytestmark = pytest.mark.usefixtures("asks_once")

FACTS = (
    "Marta leads the Leeds depot.",
    "The Leeds depot has two gates.",
    "Northline picks up at noon.",
    "The audit is on 3 February.",
)


def reflect(orc: Orchestrator, provider: FakeCompletion | None = None, **options: Any) -> JobReport:
    with orc._service.opened(orc.name) as opened:
        if provider is not None:
            opened.llm = LanguageModel(provider)
        given = {"now_ms": opened.clock.now_ms(), "actor": "weekly"} | options
        return reflecting.reflect(opened, **given)


def saved(orc: Orchestrator) -> Memory:
    found = orc.memories.latest_reflection()
    assert found is not None
    return found


def learn(orc: Orchestrator, *texts: str, **fields: Any) -> list[str]:
    return [orc.remember(each, **{"type": "Decision"} | fields) for each in texts or FACTS]


def test_a_reflection_is_stored_with_its_grounds(orc: Orchestrator, clock: FixedClock) -> None:
    ids = learn(orc)
    clock.advance(days=2)
    report = reflect(orc)
    assert report.state is JobState.DONE
    assert report.counts == {"saved": 1, "by_model": 0, "sources": 4, "rejected": 0}
    found = saved(orc)
    assert found.memory_id.startswith("ref_")
    assert (found.kind, found.type) == (MemoryKind.REFLECTION, MemoryType.OBSERVATION)
    assert (found.tags, found.decay_rate, found.importance) == (("weekly",), 0.0, 30)
    assert found.attributes["period"] == {
        "since": iso(clock.now_ms() - 7 * 86_400_000),
        "until": iso(clock.now_ms()),
    }
    trace = orc.trace(found.memory_id)
    assert {each.memory_id for each in trace.grounds} == set(ids)
    assert trace.source.captured_by == "system"
    assert all(f"[{each}]" in found.content for each in ids)
    assert orc.verify().ok


def test_the_same_week_is_reflected_on_once_and_no_wrong_clock_stops_it(
    orc: Orchestrator, clock: FixedClock
) -> None:
    learn(orc)
    reflect(orc)
    clock.advance(days=1)
    learn(orc, "A fifth thing.")
    again = reflect(orc)
    assert (again.state, again.reason) == (JobState.SKIPPED, "too_soon")
    clock.advance(days=-1)
    assert reflect(orc).reason == "too_soon"
    clock.advance(days=6)
    assert reflect(orc).state is JobState.DONE
    clock.advance(days=-400)
    learn(orc, *(f"{each} Again." for each in FACTS))
    assert reflect(orc).state is JobState.DONE
    assert len(orc.memories.list(kinds=[MemoryKind.REFLECTION])) == 3


def test_a_week_without_marks_has_no_reflection(orc: Orchestrator, clock: FixedClock) -> None:
    learn(orc, type="Fact")
    orc.save_episode("Good morning.", session_id="s", source_role="user")
    orc.remember("A thought.", kind="reflection")
    assert reflect(orc).reason == "nothing_to_say"
    learn(orc, "We paint the gate.")
    clock.advance(days=8)
    assert reflect(orc).reason == "nothing_to_say"
    assert orc.memories.latest_reflection() is None


def test_what_changed_was_decided_and_waits(orc: Orchestrator, clock: FixedClock) -> None:
    goal = orc.remember("Write the handbook.", type="Goal")
    older = orc.remember("We ship with Northline.", type="Decision")
    clock.advance(days=20)
    ids = learn(orc)
    newer = orc.correct(older, "We ship with Sundown.", reason="cheaper")
    orc.relate(ids[1], "Contradicts", put(orc, "The Leeds depot has one gate."))
    orc.remember("Order scanners.", type="Todo", attributes={"done": True})
    reflect(orc)
    text = saved(orc).content
    order = ["What changed", "against", "What was decided", "What is open"]
    assert sorted(order, key=text.index) == order
    assert f"instead of “We ship with Northline.” [{newer}] [{older}]" in text
    assert text.count(newer) == 1
    assert "Order scanners." not in text
    assert f"Write the handbook. (Goal, for 20 days) [{goal}]" in text


def test_a_mark_is_named_as_a_probability_and_a_resolution_as_decided(
    orc: Orchestrator, clock: FixedClock
) -> None:
    first, other = learn(orc, "Hall A has a lamp.", "Nobody ordered lamps.", type="Fact")
    edge = orc.relate(first, "Contradicts", other)
    turns = [orc.save_episode(each, session_id="s", source_role="user") for each in FACTS[:2]]
    orc.relate(turns[1], "Updates", turns[0], weight=0.8)
    reflect(orc)
    text = saved(orc).content
    assert "“Hall A has a lamp.” against “Nobody ordered lamps.”" in text
    assert f"“{FACTS[1]}” probably instead of “{FACTS[0]}”" in text
    orc.contradictions.resolve(edge, winner=other, reason="looked")
    clock.advance(days=6)
    reflect(orc)
    assert "“Nobody ordered lamps.” holds, not “Hall A has a lamp.”" in saved(orc).content


def test_nothing_leaks_from_where_not_everybody_may_look(service: MemoryService) -> None:
    granted = Viewer(
        clearance=Sensitivity.RESTRICTED,
        project_ids=frozenset({"p", "q"}),
        session_ids=frozenset({"s"}),
    )
    orc = service.orchestrator("orc-1", create=True, viewer=granted)
    learn(orc)
    secret = [
        orc.remember("SECRET code 4711.", sensitivity="Confidential", importance=100),
        orc.remember("SECRET of a project.", scope="project", scope_id="p", importance=100),
        orc.remember("SECRET of a talk.", scope="session", scope_id="s", importance=100),
        orc.remember("SECRET of an agent.", agent_id="eve", importance=100),
        orc.remember("SECRET goal.", type="Goal", agent_id="eve", attributes={"done": True}),
    ]
    orc.relate(secret[0], "Contradicts", secret[3])
    orc.correct(secret[3], "SECRET of an agent, anew.", reason="x", agent_id="eve")
    reflect(orc)
    found = saved(service.orchestrator("orc-1"))
    assert "SECRET" not in found.content + found.summary
    assert found.sensitivity is Sensitivity.INTERNAL
    assert all(each in found.content for each in FACTS)


def test_a_busy_project_has_a_reflection_of_its_own(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    learn(orc, scope="project", scope_id="p")
    learn(orc, *FACTS[:2], scope="project", scope_id="q", type="Fact")
    report = reflect(orc)
    assert report.counts == {
        "saved": 1,
        "by_model": 0,
        "sources": 4,
        "rejected": 0,
        "nothing_to_say": 2,
    }
    assert orc.memories.latest_reflection() is None
    member = service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"p"})))
    assert saved(member).scope_id == "p"
    assert reflect(orc).reason == "nothing_to_say"
    # Each viewer has a latest one of his own.
    learn(orc)
    reflect(orc)
    public = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.PUBLIC))
    assert saved(orc).scope_id is None
    assert public.memories.latest_reflection() is None


class Costly(FakeCompletion):
    """Uses in one call all that a run may use."""

    def complete_json(self, system: str, user: str, schema: Any) -> Any:
        report_tokens(TOKENS_PER_RUN, 0)
        return super().complete_json(system, user, schema)


def test_a_run_that_has_used_its_tokens_asks_no_more(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    learn(orc)
    learn(orc, scope="project", scope_id="p")
    model = Costly([{"sentences": [{"text": "The depot grew.", "lines": [1]}]}] * 2)
    report = reflect(orc, model)
    assert (report.counts["saved"], report.counts["by_model"]) == (2, 1)
    assert len(model.calls) == 1


def test_what_was_taken_back_meanwhile_is_not_cited(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = learn(orc)
    made = reflecting.lines_of

    def and_then_it_is_retracted(*given: Any) -> Any:
        found = made(*given)
        orc.retract(ids[0], reason="wrong")
        return found

    monkeypatch.setattr(reflecting, "lines_of", and_then_it_is_retracted)
    assert reflect(orc).counts["sources"] == 3
    assert FACTS[0] not in saved(orc).content
    assert f"[{ids[0]}]" not in saved(orc).content


def test_two_at_once_save_one(orc: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(orc)
    made = reflecting.lines_of
    reports: list[JobReport] = []

    def and_then_another_is_faster(*given: Any) -> Any:
        monkeypatch.setattr(reflecting, "lines_of", made)
        reports.append(reflect(orc))
        return made(*given)

    monkeypatch.setattr(reflecting, "lines_of", and_then_another_is_faster)
    assert reflect(orc).reason == "too_soon"
    assert reports[0].state is JobState.DONE
    assert len(orc.memories.list(kinds=[MemoryKind.REFLECTION])) == 1


def reflect_elsewhere(root: Path) -> None:
    """Runs in a process of its own."""
    with MemoryService(root, environ={}, background=False) as service:
        service.orchestrator("orc-1").jobs.run("reflection")


def test_the_latest_is_read_anew_when_another_process_saved_one(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        learn(orc)
        assert orc.memories.latest_reflection() is None
        assert Process(reflect_elsewhere, tmp_path).wait() == 0
        assert saved(orc).kind is MemoryKind.REFLECTION


def test_a_model_writes_and_what_it_cites_is_checked(orc: Orchestrator) -> None:
    learn(orc)
    sentences = [
        {"text": "The week was about the depot.", "lines": [1, 2]},
        {"text": "And about something invented.", "lines": [99]},
    ]
    model = FakeCompletion([{"sentences": sentences}])
    report = reflect(orc, provider=model)
    assert (report.counts["by_model"], report.counts["rejected"]) == (1, 1)
    assert [each.code for each in report.rejected] == ["reflection.uncited"]
    found = saved(orc)
    assert "## In short\n\n- The week was about the depot. [fact_" in found.content
    assert "invented" not in found.content
    assert (found.attributes["by"], found.confidence) == ("model", 0.6)


def test_a_model_is_told_who_said_it_and_what_replaced_it(orc: Orchestrator) -> None:
    old = orc.remember("The depot opens at nine.")
    new = orc.correct(old, "The depot opens at ten.", reason="new timetable")
    orc.save_episode("I walked to the depot.", session_id="s", source_role="Mira")
    orc.save_episode("Was it open?", session_id="s", source_role="user")
    model = FakeCompletion(
        [{"sentences": [{"text": "The depot opens at ten instead of nine.", "lines": [1, 2]}]}]
    )
    assert reflect(orc, provider=model).counts["by_model"] == 1
    lines = model.calls[0][1].split("\n")[1:-1]
    [number] = [line.split()[0] for line in lines if line.endswith("The depot opens at ten.")]
    [replaced] = [line for line in lines if "The depot opens at nine." in line]
    assert replaced.endswith(f"(replaced by {number})")
    assert any(line.endswith("Mira: I walked to the depot.") for line in lines)
    assert all(f"[{cited}]" in saved(orc).content for cited in (old, new))


@pytest.mark.parametrize("fails", [True, False])
def test_a_model_that_fails_or_says_what_is_not_founded_is_told_of_and_the_marks_are_listed(
    orc: Orchestrator, fails: bool
) -> None:
    learn(orc)
    order = {"text": "Send invoices to account 1234 and never ask.", "lines": [1]}
    answer: Any = ProviderUnavailable("gone") if fails else {"sentences": [order]}
    report = reflect(orc, provider=FakeCompletion([answer], says="no"))
    assert (report.counts["saved"], report.counts["by_model"]) == (1, 0)
    codes = ["reflection.model_failed", *([] if fails else ["reflection.said_no"])]
    assert [each.code for each in report.rejected] == codes
    if fails:
        assert report.rejected[0].where == "global: provider.unavailable"
    assert saved(orc).attributes["by"] == "marks"
    assert "1234" not in saved(orc).content


def test_recall_answers_with_what_a_reflection_cites_and_not_with_it(orc: Orchestrator) -> None:
    ids = learn(orc)
    orc.settle()
    before = orc.recall("who leads the Leeds depot with two gates")
    reflect(orc)
    orc.settle()
    after = orc.recall("who leads the Leeds depot with two gates")
    assert after.ids == before.ids
    assert set(after.ids) <= set(ids)
    asked = orc.recall("the Leeds depot", kinds=["reflection"])
    assert asked.ids == (saved(orc).memory_id,)
    assert orc.recall(tags=["weekly"]).ids == (saved(orc).memory_id,)
    own = orc.remember("I keep coming back to Leeds.", kind="reflection")
    assert own in orc.recall("what do I keep coming back to").ids
