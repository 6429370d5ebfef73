"""Whatever is said, merged and mended, in whatever order: the audit is content, a rebuild changes
nothing, and every text is linked to what its names mean."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, NotFound
from memgraph.store.sqlite import engine

NAMES = ("Anton Keller", "Bruno Marsh", "Carla Quill", "Dora Stone")
CHOICE = st.integers(0, len(NAMES) - 1)
STEPS = st.lists(
    st.tuples(st.just("say"), CHOICE, CHOICE)
    | st.tuples(st.just("merge"), CHOICE, CHOICE)
    | st.tuples(st.just("mend"), CHOICE, CHOICE),
    min_size=2,
    max_size=10,
)


class Model:
    """What is to be so: for each name the name of the entity that it means."""

    def __init__(self) -> None:
        self.said: list[tuple[int, int]] = []
        self.means: dict[int, int] = {}

    def say(self, one: int, other: int) -> None:
        self.said.append((one, other))
        for each in (one, other):
            self.means.setdefault(each, each)

    def merge(self, into: int, other: int) -> None:
        gone, kept = self.means[other], self.means[into]
        self.means = {name: kept if at == gone else at for name, at in self.means.items()}

    def mend(self, name: int) -> None:
        self.means[name] = name

    def links(self) -> set[tuple[str, int]]:
        return {
            (NAMES[self.means[name]], place)
            for place, names in enumerate(self.said, start=1)
            for name in names
        }


def links(orc: Orchestrator) -> set[tuple[str, int]]:
    with (
        orc._service.opened(orc.name) as opened,
        engine.inspected(opened.paths.database) as connection,
    ):
        return set(
            connection.driver.execute(
                "SELECT e.canonical_name, l.memory_pk FROM memory_entities l"
                " JOIN entities e ON e.pk = l.entity_pk",
            )
        )


def play(orc: Orchestrator, steps: list[tuple[str, int, int]]) -> Model:
    model = Model()
    for action, one, other in steps:
        if action == "say":
            orc.remember(
                f"{NAMES[one]} met {NAMES[other]}.", kind="episode", session_id="s", source_role="a"
            )
            model.say(one, other)
            continue
        try:
            if action == "merge":
                orc.entities.merge(NAMES[one], NAMES[other], reason="test")
            else:
                orc.entities.remove_alias(NAMES[one], NAMES[other], reason="test")
        except NotFound:
            known = one in model.means and other in model.means
            assert not known or model.means[one] != model.means[other]
        except Conflict:
            was_merged = action == "merge" and model.means[other] != other
            assert model.means[one] == model.means[other] or was_merged
        else:
            model.merge(one, other) if action == "merge" else model.mend(other)
    return model


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_links_are_what_the_names_mean_after_any_steps(steps: list[tuple[str, int, int]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryService(Path(folder), clock=FixedClock(), environ={}, background=False) as service,
    ):
        orc = service.orchestrator("orc-1", create=True)
        model = play(orc, steps)
        assert links(orc) == model.links()
        assert orc.verify().findings == []
        orc.maintenance.rebuild(["entities"])
        assert links(orc) == model.links()
        assert orc.verify().findings == []
        found = {each.canonical_name: each.mention_count for each in orc.entities.list()}
        counted = {name: len({at for one, at in model.links() if one == name}) for name in found}
        assert found == counted
