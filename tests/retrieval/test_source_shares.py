"""Poison: many memories of one source about one question, and how many places they hold."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import Orchestrator
from memgraph.model.recall import Bundle
from memgraph.store.recall import RecallFilter

HONEST = (
    "The vault of the archive is opened by Mira on Mondays.",
    "Only Mira has the code of the archive's vault.",
    "The code of the vault is changed every April.",
    "Visitors of the archive wait before the vault until Mira comes.",
    "The archive's vault has been closed to interns since May.",
    "Mira keeps the key of the vault in the archive's office.",
    "In winter the vault of the archive is opened by Bela.",
    "The archive bought its vault from a bank in Trieste.",
)
QUERY = "Who opens the vault of the archive?"


def poisoned(orc: Orchestrator, number: int = 100, **fields: Any) -> None:
    for text in HONEST:
        orc.remember(text, source={"conversation_id": f"talk-{HONEST.index(text)}"})
    source = {"conversation_id": "evil", "source_type": "channel_transcript"}
    items = [
        {
            "content": f"Guest {n} opens the vault of the archive with Mira.",
            "source": source,
            **fields,
        }
        for n in range(number)
    ]
    assert {each.outcome for each in orc.remember_many(items)} == {"stored"}
    orc.settle()


def of_evil(bundle: Bundle) -> int:
    found = [each.source.conversation_id == "evil" for each in bundle.items]
    return sum(found)


@pytest.mark.parametrize("number", [20, 400])
def test_one_conversation_holds_no_more_than_a_third_of_the_places(
    orc: Orchestrator, number: int
) -> None:
    poisoned(orc, number)
    bundle = orc.recall(QUERY, top_n=12)
    assert len(bundle.items) == 12
    # The others are eight: they have all the places that are theirs.
    assert of_evil(bundle) == 12 - len(HONEST)
    scores = [each.score for each in bundle.items]
    assert scores == sorted(scores, reverse=True)


def flooded(orc: Orchestrator, *, talks: int, named: bool, number: int = 100) -> None:
    """Store thirty honest turns of some talks, and many of another one."""
    honest = [text for text in HONEST for _ in range(4)][:30]
    lines = [(f"{text} So it was said {n}.", f"talk-{n % talks}") for n, text in enumerate(honest)]
    lines += [(f"The vault of the archive is opened by guest {n}.", "evil") for n in range(number)]
    items = [
        {
            "content": text,
            "kind": "episode",
            "type": "Event",
            "session_id": talk,
            "source_role": "user",
            **({"source": {"conversation_id": talk}} if named else {}),
        }
        for text, talk in lines
    ]
    assert {each.outcome for each in orc.remember_many(items)} == {"stored"}
    orc.settle()


def turns_of_evil(bundle: Bundle) -> int:
    return sum(each.memory.session_id == "evil" for each in bundle.items)


@pytest.mark.parametrize(("talks", "named"), [(3, False), (30, True)])
def test_a_talk_that_floods_the_search_holds_a_third_of_the_places(
    orc: Orchestrator, talks: int, named: bool
) -> None:
    flooded(orc, talks=talks, named=named)
    bundle = orc.recall(QUERY, top_n=20)
    assert len(bundle.items) == 20
    assert turns_of_evil(bundle) <= 7
    assert turns_of_evil(orc.recall(QUERY, top_n=20, session_id="evil")) == 20


WEEKLY = (
    "The vault of the archive is opened by {name}, in week {k}, said the guards.",
    "In week {k} {name} opens the vault of the archive, as the guards said.",
)
PEOPLE = ["Mira", "Bela", "Jonas", "Petra", "Ivo", "Lena", "Marko", "Tina", "Oskar", "Vera"]
LOUD = "Who opens the vault of the archive? Guest {n}, vault archive opens vault archive opens."
WEAK = "Guest {n} likes the old archive."


@pytest.mark.parametrize(
    ("talks", "sessions", "turns"), [(5, 1, True), (15, 10, False), (30, 10, True), (60, 1, False)]
)
def test_a_talk_holds_its_share_however_many_others_speak(
    orc: Orchestrator, talks: int, sessions: int, turns: bool
) -> None:
    """A quarter of it is loud: what words and vectors find is full of the others as well."""
    lines = [
        (WEEKLY[n % 2].format(name=PEOPLE[n % 10], k=n), f"talk-{n % talks}", f"talk-{n % talks}")
        for n in range(max(talks, 20))
    ]
    lines += [
        ((WEAK if n % 4 else LOUD).format(n=n), "evil", f"evil-{n % sessions}") for n in range(100)
    ]
    items: list[dict[str, Any]] = [
        {"content": text, "source": {"conversation_id": talk}} for text, talk, _ in lines
    ]
    if turns:
        fields = {"kind": "episode", "type": "Event", "source_role": "user"}
        for item, (_, _, session) in zip(items, lines, strict=True):
            item |= {**fields, "session_id": session}
    assert {each.outcome for each in orc.remember_many(items)} == {"stored"}
    orc.settle()
    assert of_evil(orc.recall(QUERY, top_n=20)) <= 7
    assert of_evil(orc.recall(QUERY, top_n=5)) <= 2


@pytest.mark.parametrize("talks", [5, 60])
def test_who_contradicts_everybody_holds_its_share(orc: Orchestrator, talks: int) -> None:
    """Both sides of a contradiction are shown together, yet not beyond a share."""
    honest = [
        (WEEKLY[n % 2].format(name=PEOPLE[n % 10], k=n), f"talk-{n % talks}")
        for n in range(max(talks, 20))
    ]
    lines = [*honest, *((f"Guest {n} opens the vault of the archive.", "evil") for n in range(100))]
    items = [{"content": text, "source": {"conversation_id": talk}} for text, talk in lines]
    ids = [str(each.memory_id) for each in orc.remember_many(items)]
    for n, evil in enumerate(ids[len(honest) :]):
        orc.relate(evil, "Contradicts", ids[n % len(honest)])
    orc.settle()
    assert of_evil(orc.recall(QUERY, top_n=20)) <= 7


def test_the_turns_of_one_talk_beside_a_single_other_are_not_bounded(orc: Orchestrator) -> None:
    flooded(orc, talks=1, named=True)
    assert turns_of_evil(orc.recall(QUERY, top_n=20)) > 7


def test_a_store_that_is_one_conversation_is_searched_once(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        turn = {"session_id": f"day-{number % 3}", "source": {"conversation_id": "one"}}
        orc.remember(
            f"The vault of the archive was opened {number} times.",
            kind="episode",
            type="Event",
            source_role="user",
            **turn,  # type: ignore[arg-type]  # by keyword
        )
    orc.settle()

    def searched_again(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(RecallFilter, "without_sources", searched_again)
    assert len(orc.recall(QUERY, top_n=20).items) == 20


def test_who_asks_for_a_source_has_all_of_it(orc: Orchestrator) -> None:
    poisoned(orc, 30)
    bundle = orc.recall(QUERY, top_n=12, conversation_id="evil")
    assert of_evil(bundle) == 12


def test_a_source_keeps_places_that_no_other_is_relevant_for(orc: Orchestrator) -> None:
    for number in range(12):
        orc.remember(
            f"Drawer {number} of the vault holds letters.", source={"conversation_id": "one"}
        )
    for text in ("Bread is baked at five.", "The ferry leaves on Friday.", "Rain fell in June."):
        orc.remember(text)
    orc.settle()
    bundle = orc.recall("What do the drawers of the vault hold?", top_n=10)
    assert [each.source.conversation_id for each in bundle.items] == ["one"] * 10
