"""Entities through a handle: profiles as far as the viewer sees, merging, mending, nicknames."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemoryInput, MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.entities import EntityInfo
from memgraph.operations.life import profiles
from memgraph.store.entity_records import EntityRecord
from memgraph.store.sqlite import engine
from memgraph.text.names import as_a_word

SEES_ALL = Viewer(clearance=Sensitivity.RESTRICTED)
LINKS = (
    "SELECT e.name_key, e.type, m.content FROM entities e"
    " JOIN memory_entities l ON l.entity_pk = e.pk JOIN memories m ON m.pk = l.memory_pk"
    " ORDER BY 1, 2, m.pk"
)


def service_with(tmp_path: Path, **entities: Any) -> MemoryService:
    return MemoryService(
        tmp_path / "root",
        clock=FixedClock(),
        environ={},
        background=False,
        config={f"memory.entities.{key}": value for key, value in entities.items()},
    )


def rows(orc: Orchestrator, statement: str = LINKS) -> list[tuple[Any, ...]]:
    with (
        orc._service.opened(orc.name) as opened,
        engine.inspected(opened.paths.database) as connection,
    ):
        return list(connection.driver.execute(statement))


def links(orc: Orchestrator) -> dict[str, list[str]]:
    """Texts by the name of the entity that they are linked to."""
    found: dict[str, list[str]] = {}
    for name, _, content in rows(orc):
        found.setdefault(name, []).append(content)
    return found


def sound_after_a_rebuild(orc: Orchestrator) -> None:
    """The audit finds nothing, and a rebuild changes no link."""
    assert orc.verify().findings == []
    before = rows(orc)
    orc.maintenance.rebuild(["entities"])
    assert rows(orc) == before
    assert orc.verify().findings == []


def named(found: EntityInfo) -> tuple[str, str, int]:
    return found.canonical_name, found.type.value, found.mention_count


def all_of(orc: Orchestrator, **asked: Any) -> list[tuple[str, str, int]]:
    return [named(each) for each in orc.entities.list(**asked)]


@pytest.fixture
def talk(orc: Orchestrator) -> Orchestrator:
    orc.remember("Caroline Smith moved to Berlin.", importance=80)
    orc._service.clock.advance(ms=1_000)  # type: ignore[attr-defined]  # a FixedClock
    orc.remember("Caroline Smith paints with Melanie.", importance=40)
    orc.remember("Cathy Brown sent a note to Melanie.")
    return orc


def test_a_profile_tells_all_about_an_entity(talk: Orchestrator) -> None:
    found = talk.entities.get("caroline smith")
    assert named(found) == ("Caroline Smith", "person", 2)
    assert [each.content for each in found.memories] == [
        "Caroline Smith moved to Berlin.",
        "Caroline Smith paints with Melanie.",
    ]
    assert found.last_seen - found.first_seen == 1_000
    assert [(each.canonical_name, each.together) for each in found.related] == [
        ("Berlin", 1),
        ("Melanie", 1),
    ]
    assert (found.aliases, found.candidates) == ((), ())
    assert talk.entities.get(found.entity_id) == found
    assert len(talk.entities.get("Caroline Smith's", limit=1).memories) == 1
    for no_name in ("", "...", "x" * 600):
        with pytest.raises(InvalidInput):
            talk.entities.get(no_name)
    # What was retracted counts no more, and what was superseded is not shown.
    berlin = next(each for each in talk.memories.list() if "Berlin" in each.content)
    newer = talk.correct(berlin.memory_id, "Caroline Smith moved to Bremen.", reason="misheard")
    found = talk.entities.get("Caroline Smith")
    assert found.mention_count == 3
    assert all("Berlin" not in each.content for each in found.memories)
    talk.retract(newer, reason="wrong")
    assert talk.entities.get("Caroline Smith").mention_count == 2
    with pytest.raises(NotFound):
        talk.entities.get("Bremen")


def test_the_list_is_by_mentions_and_by_prefix(talk: Orchestrator) -> None:
    assert all_of(talk)[:2] == [("Caroline Smith", "person", 2), ("Melanie", "person", 2)]
    assert all_of(talk, limit=1) == [("Caroline Smith", "person", 2)]
    assert [name for name, _, _ in all_of(talk, prefix="CA")] == ["Caroline Smith", "Cathy Brown"]
    assert all_of(talk, prefix="zz") == []


def test_a_name_that_may_mean_several_tells_them_all(orc: Orchestrator) -> None:
    orc.remember("Mr. Jordan called.")
    orc.remember("Mr. Jordan wrote.")
    orc.remember("We flew to Jordan in Asia.")
    kinds = {kind for name, kind, _ in all_of(orc, prefix="jordan") if name == "Jordan"}
    assert kinds == {"person", "location"}
    found = orc.entities.get("Jordan")
    assert named(found) == ("Jordan", "person", 2)
    assert [named(each) for each in found.candidates] == [("Jordan", "location", 1)]
    orc.remember("Melanie is here.")
    with pytest.raises(Conflict) as caught:
        orc.entities.merge("Melanie", "Jordan", reason="?")
    assert {each["type"] for each in caught.value.details["candidates"]} == kinds


# What a viewer may not see.


@pytest.fixture
def secret(service: MemoryService) -> tuple[Orchestrator, Orchestrator]:
    """One handle that sees all, one that sees what is internal."""
    knowing = service.orchestrator("orc-1", create=True, viewer=SEES_ALL)
    knowing.remember("Melanie Stone met Quentin Zanzipool.", sensitivity="Restricted")
    knowing.remember("Melanie Stone likes tea.")
    return knowing, service.orchestrator("orc-1")


def test_an_entity_of_hidden_memories_is_neither_there_nor_counted(
    secret: tuple[Orchestrator, Orchestrator], monkeypatch: pytest.MonkeyPatch
) -> None:
    knowing, other = secret
    hidden = knowing.entities.get("Quentin Zanzipool")
    for name in ("Quentin Zanzipool", "quentin zanzipool", hidden.entity_id):
        with pytest.raises(NotFound):
            other.entities.get(name)
        with pytest.raises(NotFound):
            other.entities.merge("Melanie Stone", name, reason="guess")
        with pytest.raises(NotFound):
            other.entities.remove_alias(name, "x", reason="guess")
    assert named(knowing.entities.get("Melanie Stone")) == ("Melanie Stone", "person", 2)
    found = other.entities.get("Melanie Stone")
    assert (named(found), found.related) == (("Melanie Stone", "person", 1), ())
    assert "zanzipool" not in found.model_dump_json().casefold()
    # A list does not even look at what is hidden.
    looked_at: list[str] = []
    look = profiles.EntityReader.found

    def noted(self: profiles.EntityReader, row: EntityRecord) -> profiles.VisibleEntity | None:
        looked_at.append(row.canonical_name)
        return look(self, row)

    monkeypatch.setattr(profiles.EntityReader, "found", noted)
    assert all_of(other) == all_of(other, prefix="m") == [("Melanie Stone", "person", 1)]
    assert all_of(other, prefix="quentin") == []
    assert looked_at == ["Melanie Stone"] * 2


@pytest.mark.engines
def test_a_name_that_stands_in_hidden_memories_alone_is_neither_shown_nor_found(
    secret: tuple[Orchestrator, Orchestrator],
) -> None:
    knowing, other = secret
    knowing.entities.merge("Quentin Zanzipool", "Melanie Stone", reason="one person")
    assert named(knowing.entities.get("Melanie Stone")) == ("Quentin Zanzipool", "person", 2)
    assert knowing.entities.get("Melanie Stone").aliases == ("Melanie Stone",)
    found = other.entities.get("Melanie Stone")
    assert named(found) == ("Melanie Stone", "person", 1)
    assert "zanzipool" not in found.model_dump_json().casefold()
    assert all_of(other) == [("Melanie Stone", "person", 1)]
    assert all_of(other, prefix="quentin") == []
    with pytest.raises(NotFound):
        other.entities.get("Quentin Zanzipool")
    with pytest.raises(NotFound):
        other.entities.remove_alias("Melanie Stone", "Quentin Zanzipool", reason="guess")

    def by_entity(orc: Orchestrator, query: str) -> int:
        return sum("entity" in each.legs for each in orc.recall(query).items)

    assert by_entity(knowing, "What does Quentin Zanzipool like?") == 2
    for name in ("Quentin Zanzipool", "Mr. Zanzipool", "Zanzipool", "Quentin"):
        assert by_entity(other, f"What does {name} like?") == 0
    assert by_entity(other, "What does Melanie Stone like?") == 1
    assert by_entity(other, "What does Melanie like?") == 1
    # Who sees only the alias may take it away, and learns no other name by that.
    left = other.entities.remove_alias("Melanie Stone", "Melanie Stone", reason="herself")
    assert named(left) == ("Melanie Stone", "person", 0)
    assert all_of(other) == [("Melanie Stone", "person", 1)]
    assert knowing.entities.get("Quentin Zanzipool").mention_count == 1
    # Nor is a surname told by a first name.
    knowing.remember("Mrs. Ottilie Zanzipool signed.", sensitivity="Restricted")
    other.remember("Ottilie called again.")
    assert len(about(knowing, "Ottilie Zanzipool")) == 2
    told = other.entities.get("Ottilie").model_dump_json() + str(all_of(other))
    assert "zanzipool" not in told.casefold()


def test_a_hidden_name_in_a_longer_word_is_not_known(service: MemoryService) -> None:
    knowing = service.orchestrator("orc-1", create=True, viewer=SEES_ALL)
    narrow = service.orchestrator("orc-1")
    knowing.remember("Arthur Dent spoke in Berlin.")
    knowing.remember("Mr. Art Vance is the source.", sensitivity="Restricted")
    knowing.entities.merge("Arthur Dent", "Art Vance", reason="cover name")
    knowing.remember("Arthur Dent said that Art Vancey came.")
    assert narrow.entities.get("Arthur Dent").aliases == ()
    with pytest.raises(NotFound):
        narrow.entities.get("Art Vance")
    assert knowing.entities.get("Art Vance").aliases == ("Art Vance",)
    # What is written without blanks has no words that could be told apart.
    assert re.search(as_a_word("東京"), "昨日東京都で") is not None
    assert re.search(as_a_word("art"), "start") is None


def test_a_rare_name_of_a_busy_entity_is_known_and_can_be_taken_away(
    talk: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "MAX_READ", 2)
    talk.entities.merge("Caroline Smith", "Cathy Brown", reason="her pen name")
    for number in range(5):
        talk.remember(f"Caroline Smith has sent letter {number}.")
    talk.remember("Caroline Smith met 田中太郎 here.", sensitivity="Restricted")
    assert talk.entities.get("Cathy Brown").aliases == ("Cathy Brown",)
    narrow = talk._service.orchestrator(talk.name, viewer=Viewer(clearance=Sensitivity.PUBLIC))
    with pytest.raises(NotFound):
        narrow.entities.get("Cathy Brown")
    left = talk.entities.remove_alias("Caroline Smith", "Cathy Brown", reason="another person")
    assert named(left) == ("Caroline Smith", "person", 7)
    assert named(talk.entities.get("Cathy Brown")) == ("Cathy Brown", "person", 1)
    sound_after_a_rebuild(talk)


# Merging and taking away.


def test_a_merge_moves_links_names_and_counts_and_survives_a_rebuild(talk: Orchestrator) -> None:
    kept = talk.entities.get("Caroline Smith")
    gone = talk.entities.get("Cathy Brown")
    merged = talk.entities.merge("Caroline Smith", "Cathy Brown", reason="her pen name")
    assert merged == EntityInfo(
        entity_id=kept.entity_id, canonical_name="Caroline Smith", type="person", mention_count=3
    )
    found = talk.entities.get("cathy brown")
    assert (found.entity_id, found.aliases) == (kept.entity_id, ("Cathy Brown",))
    assert talk.entities.get(gone.entity_id).entity_id == kept.entity_id
    assert "cathy brown" not in links(talk)
    sound_after_a_rebuild(talk)
    talk.remember("A letter of Cathy Brown came.")
    assert talk.entities.get("Caroline Smith").mention_count == 4
    with pytest.raises(Conflict):
        talk.entities.merge("Caroline Smith", "Cathy Brown", reason="again")
    sound_after_a_rebuild(talk)


def test_a_wrong_merge_is_mended_by_taking_the_alias_away(service: MemoryService) -> None:
    petrovs = service.orchestrator("orc-1", create=True, viewer=SEES_ALL)
    petrovs.remember("Mr. Petrov signed the lease.")
    petrovs.remember("Petrov asked for a boat.")
    petrovs.remember("Mrs. Petrova sings in the choir.")
    petrovs.remember("Mr. Petrov met Mrs. Petrova at the station.")
    petrovs.remember("Mrs. Petrova sold a Stradivari.", sensitivity="Restricted")
    petrovs.entities.merge("Petrov", "Petrova", reason="one person")
    assert set(links(petrovs)) == {"petrov"}
    petrovs.remember("Petrova wrote a letter.")
    # Hidden memories are unlinked, too, but not shown.
    narrow = service.orchestrator(petrovs.name)
    left = narrow.entities.remove_alias("Petrov", "Petrova", reason="his wife")
    assert named(left) == ("Petrov", "person", 3)
    assert "Stradivari" not in narrow.entities.get("Petrova").model_dump_json()
    both = "Mr. Petrov met Mrs. Petrova at the station."
    assert links(petrovs) == {
        "petrov": ["Mr. Petrov signed the lease.", "Petrov asked for a boat.", both],
        "petrova": [
            *("Mrs. Petrova sings in the choir.", both, "Mrs. Petrova sold a Stradivari."),
            "Petrova wrote a letter.",
        ],
    }
    assert petrovs.entities.get("Petrova").aliases == ()
    sound_after_a_rebuild(petrovs)
    petrovs.remember("Petrova came home.")
    assert petrovs.entities.get("Petrov").mention_count == 3
    entries = rows(
        petrovs,
        "SELECT action, subject, details FROM audit_log"
        " WHERE action IN ('merge_entities', 'remove_alias') ORDER BY seq",
    )
    (merge, into, merged), (remove, parted_from, parted) = entries
    assert (merge, remove, into) == ("merge_entities", "remove_alias", parted_from)
    merged, parted = json.loads(merged), json.loads(parted)
    assert (merged["reason"], merged["into"]["id"]) == ("one person", into)
    assert (parted["reason"], parted["alias"]) == ("his wife", "petrova")
    assert parted["new"]["id"] == merged["other"]["id"]


def test_an_alias_that_was_no_entity_only_unlinks(talk: Orchestrator) -> None:
    with talk._service.opened(talk.name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO entity_aliases SELECT 'my boss', pk, 'my boss' FROM entities"
            " WHERE name_key = 'caroline smith'"
        )
    talk.remember("I lunched with my boss.")
    talk.remember("Caroline Smith is my boss.")
    assert talk.entities.get("my boss").mention_count == 4
    left = talk.entities.remove_alias("Caroline Smith", "my boss", reason="not any more")
    assert named(left) == ("Caroline Smith", "person", 3)
    assert "I lunched with my boss." not in links(talk)["caroline smith"]
    with pytest.raises(NotFound):
        talk.entities.get("my boss")
    talk.remember("I dined with my boss.")
    assert talk.entities.get("Caroline Smith").mention_count == 3


def test_a_first_name_goes_to_the_person_whom_it_means_now(orc: Orchestrator) -> None:
    orc.remember("Boris Keller called.")
    orc.remember("Anna Petrova wrote.")
    orc.entities.merge("Boris Keller", "Anna Petrova", reason="one account")
    orc.remember("Then Anna came, and Boris left.")
    orc.entities.remove_alias("Boris Keller", "Anna Petrova", reason="two persons")
    both = "Then Anna came, and Boris left."
    assert links(orc)["anna petrova"] == ["Anna Petrova wrote.", both]
    assert links(orc)["boris keller"] == ["Boris Keller called.", both]
    sound_after_a_rebuild(orc)


@pytest.mark.engines
def test_a_last_name_means_the_one_person_who_has_it(orc: Orchestrator) -> None:
    orc.remember("Vitaly Petrov lives in Kyiv.")
    orc.remember("Mr. Petrov signed the lease.")
    orc.remember("Petrov has paid.")
    assert len(about(orc, "Vitaly Petrov")) == 3
    for name in ("Petrov", "Mr. Petrov"):
        assert orc.entities.get(name).entity_id == orc.entities.get("Vitaly Petrov").entity_id
    assert orc.entities.get("Petrov").aliases == ()
    items = orc.recall("What does Mr. Petrov want?").items
    assert all("entity" in each.legs for each in items)
    assert len(items) == 3
    orc.remember("Mrs. Olga Petrov sings.")
    assert [each.canonical_name for each in orc.entities.get("Petrov").candidates] == [
        "Olga Petrov"
    ]
    orc.remember("Mr. Petrov sold a boat.")
    assert len(about(orc, "Vitaly Petrov")) == 3
    assert len(about(orc, "Olga Petrov")) == 1
    assert about(orc, "Petrov") == ["Mr. Petrov sold a boat."]
    orc.remember("Vitaly Petrov is ill, so Mr. Petrov stays at home.")
    assert len(about(orc, "Vitaly Petrov")) == 4
    assert len(about(orc, "Petrov")) == 1
    assert orc.verify().ok


@pytest.mark.parametrize("name", ["Petrov", "Vitaly"])
def test_a_name_of_one_word_becomes_the_person_whose_full_name_comes_later(
    orc: Orchestrator, name: str
) -> None:
    early, both = f"Mr. {name} signed the lease.", "Mr. Vitaly Petrov lives in Kyiv."
    orc.remember(early)
    orc.remember(both)
    assert set(about(orc, "Vitaly Petrov")) == {early, both}
    assert orc.entities.get(name) == orc.entities.get("Vitaly Petrov")
    orc.maintenance.rebuild(["entities"])
    assert set(about(orc, name)) == {early, both}
    orc.entities.remove_alias("Vitaly Petrov", name, reason="his uncle")
    assert (about(orc, name), about(orc, "Vitaly Petrov")) == ([early], [both])
    orc.remember(f"Mr. {name} called. Mr. Vitaly Petrov did not.")
    orc.maintenance.rebuild(["entities"])
    assert len(about(orc, name)) == 1
    assert orc.verify().ok


def test_a_first_or_last_name_of_two_persons_is_neither(orc: Orchestrator) -> None:
    orc.remember("Mr. Petrov signed the lease.")
    orc.remember_many(
        [MemoryInput(content=f"Mr. {name} Petrov has paid.") for name in ("Vitaly", "Boris")]
    )
    assert about(orc, "Petrov") == ["Mr. Petrov signed the lease."]
    orc.remember("Mrs. Olga Sommer sings.")
    orc.remember("Mr. Sommer listens.")
    orc.remember("Mr. Anton Sommer sleeps.")
    orc.remember("Mr. Sommer wakes.")
    assert about(orc, "Sommer") == ["Mr. Sommer wakes."]
    orc.remember("Mrs. Ottilie Varga signed.")
    orc.remember("Ottilie called again.")
    assert len(about(orc, "Ottilie Varga")) == 2
    orc.remember("Mrs. Ottilie Brandt signed.")
    orc.remember("Then ottilie left, and Ottilie came.")
    assert len(about(orc, "Ottilie Varga")) == 2
    assert len(about(orc, "Ottilie Brandt")) == 1
    orc.maintenance.rebuild(["entities"])
    assert about(orc, "Petrov") == ["Mr. Petrov signed the lease."]
    assert orc.verify().ok


@pytest.mark.engines
def test_a_full_name_that_not_all_may_read_takes_no_name_of_one_word(
    service: MemoryService,
) -> None:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    knowing = service.orchestrator("orc-1", create=True, viewer=viewer)
    other = service.orchestrator("orc-1", viewer=Viewer(agent_id="ana"))
    hidden = {
        "Vitaly Petrov": {"sensitivity": "Restricted"},
        "Anton Sommer": {"scope": "project", "scope_id": "p"},
        "Boris Varga": {"agent_id": "ben"},
    }
    short = {name: name.split()[1] for name in hidden}
    for name, fields in hidden.items():
        knowing.remember(f"Mr. {short[name]} signed the lease.")
        before = other.entities.get(short[name])
        knowing.remember(f"Mr. {name} lives in Kyiv.", **fields)
        assert other.entities.get(short[name]) == before
    before_all = {name: other.entities.get(short[name]) for name in hidden}
    knowing.maintenance.rebuild(["entities"])
    assert {name: other.entities.get(short[name]) for name in hidden} == before_all
    for name in hidden:
        knowing.remember(f"Mr. {name} has a boat.")
    knowing.maintenance.rebuild(["entities"])
    for name in hidden:
        assert other.entities.get(short[name]).canonical_name == name
        assert len(about(knowing, short[name])) == 3


def test_only_other_names_of_the_entity_can_be_taken_away(talk: Orchestrator) -> None:
    talk.remember("Caroline came.")
    before = rows(talk, "SELECT count(*) FROM audit_log")
    for alias, error in (("...", NotFound), ("caroline smith", Conflict), ("Melanie", NotFound)):
        with pytest.raises(error):
            talk.entities.remove_alias("Caroline Smith", alias, reason="x")
    assert rows(talk, "SELECT count(*) FROM audit_log") == before


def test_another_spelling_is_an_alias_once(orc: Orchestrator) -> None:
    orc.remember("Acme Corp is here.")
    for _ in range(3):
        orc.remember("ACME Corp is here.", kind="episode", session_id="s")
    assert orc.entities.get("acme corp").aliases == ("ACME Corp",)
    assert rows(orc, "SELECT alias_key, alias FROM entity_aliases") == [("acme corp", "ACME Corp")]
    sound_after_a_rebuild(orc)


# Nicknames.


def test_nicknames_are_found_in_texts_and_in_questions_both_ways(tmp_path: Path) -> None:
    with service_with(tmp_path, nicknames=["Cazza=Caroline Smith", "Art=Arthur Stone"]) as service:
        orc = service.orchestrator("orc-1", create=True)
        by_nick = orc.remember("then Cazza burned the soup")
        by_name = orc.remember("Caroline Smith bought a boat")
        # A nickname in a longer name is a part of that.
        orc.remember("We visited the Art Institute of Chicago with Melanie.")
        orc.remember("the art of Melanie")
        with pytest.raises(NotFound):
            orc.entities.get("Arthur Stone")
        found = orc.entities.get("cazza")
        assert named(found) == ("Caroline Smith", "person", 2)
        assert found.aliases == ("Cazza",)
        for question in ("What about Cazza?", "what about cazza?", "what about caroline smith?"):
            shown = {
                each.memory.memory_id
                for each in orc.recall(question).items
                if "entity" in each.legs
            }
            assert shown == {by_nick, by_name}, question
        sound_after_a_rebuild(orc)


# Strategies of the write path.


def test_a_write_goes_on_without_a_pipeline_that_fails_and_health_tells(tmp_path: Path) -> None:
    chosen = {"fast": ["regex", "spacy"], "spacy_model": str(tmp_path / "none")}
    with service_with(tmp_path, **chosen) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("we met Caroline Smith")
        assert all_of(orc) == [("Caroline Smith", "person", 1)]
        assert service.health("orc-1")["degraded"] == ["entities.failing"]


def test_no_language_model_is_asked_while_a_write_waits(tmp_path: Path) -> None:
    with (
        service_with(tmp_path, fast=["regex", "llm"]) as service,
        pytest.raises(InvalidInput, match="language model"),
    ):
        service.settings("orc-1")


# Who speaks, and what is known.


def about(orc: Orchestrator, name: str) -> list[str]:
    return [each.content for each in orc.entities.get(name).memories]


def test_whoever_speaks_is_an_entity_and_is_known_from_then_on(orc: Orchestrator) -> None:
    turn = orc.save_episode("I have two cats.", session_id="s", source_role="Jolene")
    orc.save_episode("Noted.", session_id="s", source_role="assistant")
    orc.save_episode("Who is on call?", session_id="s", source_role="user")
    orc.remember("Has two cats.", derived_from=[turn])
    # Who speaks under one word is no person of a text.
    orc.remember("Mrs. Jolene Griffith made a film.")
    assert about(orc, "Jolene") == ["Has two cats.", "I have two cats."]
    people = {name for name, kind, _ in all_of(orc) if kind == "person"}
    assert people == {"Jolene", "Jolene Griffith"}
    sound_after_a_rebuild(orc)


def test_a_role_and_a_declared_agent_are_no_persons_and_a_declared_person_is(
    orc: Orchestrator,
) -> None:
    for role in (
        "user",
        "Assistant",
        "system",
        "tool",
        "Research Agent",
        "gpt-4",
        "bot_7",
        "a@b.c",
    ):
        orc.save_episode("nothing here", session_id="s", source_role=role)
    orc.events.publish(AgentTurn(session_id="s", content="done", source_role="Scout"))
    orc.events.publish(UserTurn(session_id="s", content="thanks", source_role="quillon"))
    assert [name for name, _, _ in all_of(orc)] == ["Quillon"]


def test_known_names_are_found_in_new_text(orc: Orchestrator) -> None:
    orc.save_episode("hello", session_id="s", source_role="Jolene")
    orc.remember("Jolene lives in Paris.")
    orc.remember("The town of Jolenesville is far.")
    orc.remember("Mail jolene@example.org or see /jolene/x.")
    # Facts first, then turns.
    assert about(orc, "Jolene") == ["Jolene lives in Paris.", "hello"]
    sound_after_a_rebuild(orc)


def test_a_common_word_is_a_name_only_where_it_is_written_as_one(orc: Orchestrator) -> None:
    orc.save_episode("hello", session_id="s", source_role="Will")
    orc.save_episode("hello", session_id="s", source_role="Mark")
    orc.remember("Will it rain? Mark the date. We will mark it.")
    assert len(about(orc, "Will")) == len(about(orc, "Mark")) == 1
    orc.remember("They met Will and Mark there.")
    assert len(about(orc, "Will")) == len(about(orc, "Mark")) == 2


def test_names_that_another_process_learned_are_found(tmp_path: Path) -> None:
    one, two = service_with(tmp_path), service_with(tmp_path)
    here, there = one.orchestrator("orc-1", create=True), two.orchestrator("orc-1")
    here.remember("nothing is known yet")
    there.save_episode("hello", session_id="s", source_role="Zebedia")
    here.remember("Zebedia has the keys.")
    assert about(here, "Zebedia") == ["Zebedia has the keys.", "hello"]
    one.close()
    two.close()


def test_a_name_of_a_write_that_failed_is_not_known(orc: Orchestrator) -> None:
    def failing_write() -> None:
        with orc._service.opened(orc.name) as opened, opened.transaction("test") as transaction:
            prepared = opened.writer.prepare(MemoryInput(content="Quillon: “Yes.”"))
            opened.writer.store(transaction, [prepared], [])
            raise InvalidInput("stop")

    with pytest.raises(InvalidInput):
        failing_write()
    orc.save_episode("hello", session_id="s", source_role="Zebedia")
    orc.remember("Quillon and Zebedia are here, said nobody.")
    assert len(about(orc, "Zebedia")) == 2
    sound_after_a_rebuild(orc)


def test_recall_finds_an_entity_by_its_merged_name(orc: Orchestrator) -> None:
    orc.remember("Ada Lovelace wrote notes.")
    said = orc.remember("Ada Byron was her name.")
    orc.entities.merge("Ada Byron", "Ada Lovelace", reason="one person")
    for left in (2, 1):
        # Also when the memory that said it is gone.
        asked = orc.recall("What did Ada Byron write?").items
        assert ["entity" in each.legs for each in asked] == [True] * left
        if left == 2:
            orc.retract(said, reason="tidied")


def test_without_models_nothing_accurate_is_there(orc: Orchestrator) -> None:
    assert orc.accurate_ner_available is False


@pytest.mark.engines
def test_a_question_names_whoever_is_known(orc: Orchestrator) -> None:
    orc.save_episode("I paid the lease.", session_id="s", source_role="Fenwick")
    orc.save_episode("My oboe is new.", session_id="s", source_role="Chioma Okafor")
    orc.remember("They will plant an oak.", attributes={"entity_names": ["kestrel board", "Will"]})
    found = {
        query: {each.memory.content for each in orc.recall(query).items if "entity" in each.legs}
        for query in (
            *("What did Fenwick do?", "Where is Okafor?", "What does the Kestrel Board want?"),
            *("Will fenwick come?", "Will it rain?", "Is Fenwick Street far?"),
        )
    }
    assert list(found.values()) == [
        *({"I paid the lease."}, {"My oboe is new."}, {"They will plant an oak."}),
        *(set(), set(), set()),
    ]
