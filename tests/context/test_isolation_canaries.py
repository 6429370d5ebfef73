"""Nothing of another task, project, sensitivity or agent is handed out, on any path there is.

Every public method of ``Orchestrator`` is walked, or named with the reason why it is not: who adds
one is told by ``test_every_public_method_is_looked_at``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from canaries import EVERYTHING, PROJECTS, QUERY, TASKS, World, built, leaks, texts, words_in
from citing_model import citing
from sampling import third
from working import members_of, working

from memgraph import MemoryHooks, MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import MS_PER_DAY
from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.model.context import BlockFormat
from memgraph.model.enums import STORED_STATUSES, MemoryKind, MemoryType, SourceName

READERS = {
    "default": Viewer(),
    "task and project": Viewer(
        session_ids=frozenset({TASKS[0]}), project_ids=frozenset({PROJECTS[0]})
    ),
    "public": Viewer(
        clearance=Sensitivity.PUBLIC,
        session_ids=frozenset(TASKS),
        project_ids=frozenset(PROJECTS),
    ),
    "an agent": Viewer(
        clearance=Sensitivity.RESTRICTED,
        session_ids=frozenset(TASKS),
        project_ids=frozenset(PROJECTS),
        agent_id="Kxagena",
    ),
    "an agent alone": Viewer(agent_id="Kxagena", shared=False),
    "only the project": Viewer(
        project_ids=frozenset({PROJECTS[0]}), scopes=frozenset({Scope.PROJECT})
    ),
}

ABSENT = "fact_00000000000000000000000000"
Walk = Callable[[Orchestrator, World], Iterator[Any]]


def recalls(orc: Orchestrator, world: World) -> Iterator[Any]:
    yield orc.recall(QUERY, top_n=200)
    for fields in (
        {"kinds": tuple(MemoryKind)},
        {"types": tuple(MemoryType)},
        {"tags": ("launch",)},
        {"include_superseded": True},
        {"as_of": world.at},
        {"token_budget": 10_000},
        {"event_after": 0},
        {"exclude_session_id": "nothing"},
        {"scopes": tuple(sorted(orc.viewer.scopes))},
        {"clearance": Sensitivity.PUBLIC},
    ):
        yield orc.recall(QUERY, top_n=200, **fields)
        if fields.keys() & {"kinds", "types", "tags", "event_after"}:
            yield orc.recall("", top_n=200, **fields)
    for session in world.sessions[::4]:
        yield orc.recall(QUERY, session_id=session)
    # One by one, by the words of those that are hidden too.
    for canary in world.canaries[::9]:
        word = sorted(canary.words)[-1]
        found = orc.recall(word, top_n=5).model_copy(update={"query": ""})
        yield found


def subgraphs(orc: Orchestrator, world: World) -> Iterator[Any]:
    ids = [each.memory_id for each in world.seen(orc.viewer)]
    asked_for: tuple[dict[str, Any], ...] = (
        {},
        {"as_of": world.at},
        {"edge_types": ["Contradicts", "PartOf"]},
        {"retracted": True},
    )
    for options in asked_for:
        found = orc.graph.subgraph(ids, hops=4, max_nodes=500, **options)
        yield found
        graph = found.to_networkx()
        yield dict(graph.nodes(data=True))
        yield list(graph.edges(data=True))
    asked = orc.graph.subgraph([each.memory_id for each in world.hidden(orc.viewer)], hops=2)
    # It says again what was asked for, and nothing else.
    assert (asked.seeds, asked.nodes, asked.edges) == ((), (), ())


def gets(orc: Orchestrator, world: World) -> Iterator[Any]:
    yield from _of_each(orc.get, orc, world)
    yield from _of_each(lambda one: orc.get(one, as_of=world.at), orc, world)


def traces(orc: Orchestrator, world: World) -> Iterator[Any]:
    for each in world.seen(orc.viewer)[::2]:
        yield orc.trace(each.memory_id)
        yield orc.trace(each.memory_id, as_of=world.at)
    for each in world.hidden(orc.viewer):
        with pytest.raises(NotFound):
            orc.trace(each.memory_id)


def diffs(orc: Orchestrator, world: World) -> Iterator[Any]:
    found = orc.history.diff(0, world.at + MS_PER_DAY, limit=1_000)
    assert found.counts["learnt"] == len(found.learnt)
    # An orchestrator in which nothing was ever said has no world.
    assert bool(found.learnt) == bool(world.canaries)
    yield found


def grounds(orc: Orchestrator, world: World) -> Iterator[Any]:
    yield from _of_each(lambda one: orc.graph.grounds(one, lines=1000), orc, world)
    # Of whoever sees nothing of a run there is none.
    with suppress(NotFound):
        yield orc.graph.grounds(workflow_run_id="run-1", lines=1000)


def _of_each(ask: Callable[[str], Any], orc: Orchestrator, world: World) -> Iterator[Any]:
    for each in world.seen(orc.viewer):
        yield ask(each.memory_id)
    for each in world.hidden(orc.viewer):
        with pytest.raises(NotFound):
            ask(each.memory_id)


def lists(orc: Orchestrator, world: World) -> Iterator[Any]:
    yield orc.memories.list(statuses=(), limit=1000)
    yield orc.memories.list(statuses=STORED_STATUSES, tags=["launch"], limit=1000)
    for kind in MemoryKind:
        yield orc.memories.list(kinds=[kind], limit=1000)
    for session in world.sessions:
        yield orc.memories.list(session_id=session)
    for each in world.seen(orc.viewer)[::10]:
        yield orc.memories.list(before=each.memory_id)
    refusals = set()
    for one in (ABSENT, *(each.memory_id for each in world.hidden(orc.viewer))):
        with pytest.raises(NotFound) as refused:
            orc.memories.list(before=one)
        refusals.add(str(refused.value).replace(one, "<id>"))
    # One that is hidden answers as one that was never there.
    assert len(refusals) == 1
    yield sorted(refusals)


def contradictions(orc: Orchestrator, world: World) -> Iterator[Any]:
    for resolved in (False, True):
        yield orc.contradictions.list(resolved=resolved, limit=500)
        yield orc.contradictions.list(resolved=resolved, limit=500, as_of=world.at)


def cases(orc: Orchestrator, world: World) -> Iterator[Any]:
    for resolved in (False, True):
        for each in orc.contradictions.list(resolved=resolved, limit=500).items:
            yield orc.contradictions.get(each.edge.edge_id)
            yield orc.contradictions.get(each.edge.edge_id, as_of=world.at)


def entities(orc: Orchestrator, world: World) -> Iterator[Any]:
    yield orc.entities.list(limit=1000)
    yield orc.entities.list(prefix="kx", limit=1000)


def entity_infos(orc: Orchestrator, world: World) -> Iterator[Any]:
    forbidden = world.forbidden(orc.viewer)
    for each in world.canaries:
        for word in sorted(each.words - forbidden):
            try:
                yield orc.entities.get(word, limit=100)
            except NotFound:
                continue
        for word in sorted(each.words & forbidden)[:1]:
            with pytest.raises(NotFound):
                orc.entities.get(word)


def contexts(orc: Orchestrator, world: World) -> Iterator[Any]:
    for form in BlockFormat:
        yield orc.context(QUERY, budget_tokens=50_000, format=form)
    yield orc.context("", budget_tokens=50_000)


def answers(orc: Orchestrator, world: World) -> Iterator[Any]:
    with citing():
        answer = orc.ask(QUERY, budget_tokens=50_000)
    assert answer.answered == bool(orc.context(QUERY, budget_tokens=50_000).memories)
    yield answer
    yield replace(orc.receipts.get(answer.receipt_id), query="", asked={})


def receipts(orc: Orchestrator, world: World) -> Iterator[Any]:
    owner = orc._service.orchestrator(orc.name, viewer=EVERYTHING)
    everything = owner.recall(QUERY, top_n=200).receipt_id
    if world.hidden(orc.viewer):
        with pytest.raises(NotFound):
            orc.receipts.get(everything)
    else:
        yield orc.receipts.get(everything)
    yield orc.receipts.get(orc.recall(QUERY, top_n=200).receipt_id)


def receipt_lists(orc: Orchestrator, world: World) -> Iterator[Any]:
    owner = orc._service.orchestrator(orc.name, viewer=EVERYTHING)
    everything = owner.recall(QUERY, top_n=200).receipt_id
    listed = orc.receipts.list(limit=200).receipts
    is_listed = everything in {each.receipt_id for each in listed}
    assert is_listed != bool(world.hidden(orc.viewer))
    # Query and filters are the words of who asked: other walks ask for what they may not see.
    yield [replace(each, query="", asked={}) for each in listed]


def bulletin_histories(orc: Orchestrator, world: World) -> Iterator[Any]:
    owner = orc._service.orchestrator(orc.name, viewer=EVERYTHING)
    for handle in (owner, orc):
        handle.bulletin()
    listed = orc.receipts.bulletins(limit=500).bulletins
    yield listed
    for each in listed:
        yield orc.receipts.bulletin(each.bulletin_id)
    hidden = {each.memory_id for each in world.hidden(orc.viewer)}
    for each in owner.receipts.bulletins(limit=500).bulletins:
        if hidden & {*owner.receipts.bulletin(each.bulletin_id).memory_ids}:
            with pytest.raises(NotFound):
                orc.receipts.bulletin(each.bulletin_id)


def source_lists(orc: Orchestrator, world: World) -> Iterator[Any]:
    for kind in (None, *SourceName):
        yield orc.sources.list(kind=kind, limit=500)


def sources(orc: Orchestrator, world: World) -> Iterator[Any]:
    names = [(kind, each.name) for kind in SourceName for each in orc.sources.list(kind=kind).items]
    for kind, name in names:
        yield orc.sources.get(kind, name)


def source_retractions(orc: Orchestrator, world: World) -> Iterator[Any]:
    owner = orc._service.orchestrator(orc.name, viewer=EVERYTHING)
    fields = {
        SourceName.PATH: "path",
        SourceName.CONVERSATION: "conversation_id",
        SourceName.RUN: "workflow_run_id",
        SourceName.CONTENT: "content_sha256",
    }
    for kind, field in fields.items():
        for each in owner.sources.list(kind=kind, limit=500).items[::3]:
            try:
                found = orc.sources.retract(reason="x", **{field: each.name})  # type: ignore[arg-type]
            except NotFound:
                continue
            # It says again what was asked for.
            yield found.model_copy(update={"name": ""})


def items(store: Any) -> Iterator[Any]:
    yield store.backend.list_all()
    yield store.backend.query({}, limit=1000, order_by="importance")
    yield store.backend.query({"tags": ["launch"]}, limit=1000)


def tasks(orc: Orchestrator, world: World) -> Iterator[Any]:
    for one in sorted(orc.viewer.session_ids):
        if Scope.SESSION in orc.viewer.scopes:
            store = orc.stores.task(one)
            yield from items(store)
            yield store.get_stage_outputs("plan")
    for other in sorted(set(TASKS) - orc.viewer.session_ids):
        with pytest.raises(MemgraphError):
            orc.stores.task(other)


def projects(orc: Orchestrator, world: World) -> Iterator[Any]:
    for one in sorted(orc.viewer.project_ids):
        store = orc.stores.project(one)
        yield from items(store)
        yield store.query_decisions()
        yield store.query_decisions(["launch"])
    for other in sorted(set(PROJECTS) - orc.viewer.project_ids):
        with pytest.raises(MemgraphError):
            orc.stores.project(other)


def everywhere(orc: Orchestrator, world: World) -> Iterator[Any]:
    if Scope.GLOBAL in orc.viewer.scopes:
        store = orc.stores.global_tier()
        yield from items(store)
        yield store.query_preferences()


def tiers(orc: Orchestrator, world: World) -> Iterator[Any]:
    granted = {
        "task": (Scope.SESSION, TASKS, orc.viewer.session_ids),
        "project": (Scope.PROJECT, PROJECTS, orc.viewer.project_ids),
    }
    for tier, (scope, named, ids) in granted.items():
        for one in named:
            if one in ids and scope in orc.viewer.scopes:
                yield orc.contexts.tier(tier, one, limit=1000)
            else:
                with pytest.raises(AccessDenied):
                    orc.contexts.tier(tier, one)
    if Scope.GLOBAL in orc.viewer.scopes:
        yield orc.contexts.tier("global", limit=1000)


def built_contexts(orc: Orchestrator, world: World) -> Iterator[Any]:
    if orc.viewer.scopes == frozenset(Scope):
        yield orc.contexts.build(query=QUERY, budget_tokens=100_000)
    for one in TASKS:
        if one in orc.viewer.session_ids and orc.viewer.scopes == frozenset(Scope):
            yield orc.contexts.build(one, query=QUERY, budget_tokens=100_000)
        elif one not in orc.viewer.session_ids:
            with pytest.raises(AccessDenied):
                orc.contexts.build(one, query=QUERY)


def jobs(orc: Orchestrator, world: World) -> Iterator[Any]:
    owner = orc._service.orchestrator(orc.name, viewer=EVERYTHING)
    for session in [each.session_id for each in owner.sessions.list(limit=3)]:
        owner.jobs.run("consolidation", session_id=session)
    yield orc.jobs.list(limit=1000)


def _once(name: str, *given: Any, **options: Any) -> Walk:
    """Return the walk of one property, or of one call of a method."""

    def walk(orc: Orchestrator, world: World) -> Iterator[Any]:
        member = attrgetter(name)(orc)
        yield member(*given, **options) if callable(member) else member

    return walk


READS: dict[str, Walk] = {
    "ask": answers,
    "contexts.build": built_contexts,
    "bulletin": lambda orc, world: iter([orc.bulletin(), orc.bulletin(as_of=world.at)]),
    "contradictions.get": cases,
    "contradictions.list": contradictions,
    "entities.list": entities,
    "stores.global_tier": everywhere,
    "get": gets,
    "context": contexts,
    "entities.get": entity_infos,
    "graph.grounds": grounds,
    "history.diff": diffs,
    "history.get": lambda orc, world: _of_each(orc.history.get, orc, world),
    "graph.impact": lambda orc, world: _of_each(orc.graph.impact, orc, world),
    "jobs.list": jobs,
    "memories.latest_reflection": _once("memories.latest_reflection"),
    "memories.list": lists,
    "stores.project": projects,
    "recall": recalls,
    "receipts.get": receipts,
    "receipts.list": receipt_lists,
    "receipts.bulletins": bulletin_histories,
    "sources.retract": source_retractions,
    "sources.get": sources,
    "sources.list": source_lists,
    "sessions.list": _once("sessions.list", limit=1000),
    "graph.connected": _once("graph.connected", limit=2_000),
    "sources.lines": lambda orc, world: _of_each(orc.sources.lines, orc, world),
    "graph.subgraph": subgraphs,
    "stores.task": tasks,
    "contexts.tier": tiers,
    "trace": traces,
}

COUNTS = {
    name: _once(name)
    for name in (
        *("accurate_ner_available", "jobs.plans", "settle", "settings", "paths"),
        *("maintenance.embeddings_status", "maintenance.stats", "maintenance.compare_pending"),
        *("maintenance.pending_comparisons", "maintenance.pending_embeddings", "memories.counts"),
    )
} | {"ingestion.propose": _once("ingestion.propose", "Ana works at Acme.")}
"""Methods that tell numbers and states; they may tell no word of a memory to anybody."""

Attempt = Callable[[Orchestrator, str, str], Any]

REFUSED: dict[str, Attempt] = {
    "confirm": lambda orc, hidden, own: orc.confirm(hidden),
    "correct": lambda orc, hidden, own: orc.correct(hidden, "Something else.", reason="x"),
    "contexts.promote": lambda orc, hidden, own: orc.contexts.promote(
        hidden, "global", None, lambda _: True
    ),
    "relate": lambda orc, hidden, own: orc.relate(own, "RelatedTo", hidden),
    "remember": lambda orc, hidden, own: orc.remember("Derived.", derived_from=[hidden]),
    "restore": lambda orc, hidden, own: orc.restore(hidden, reason="x"),
    "retract": lambda orc, hidden, own: orc.retract(hidden, reason="x"),
}
"""Methods that take a memory's id and have to know none that is hidden."""

ELSEWHERE = {
    "the same methods; tests/service/test_aio.py": "aio",
    "the operator's: it works on the whole database, whoever's handle it is called on": (
        "erasure.erase erasure.reports exchange.backup exchange.export exchange.export_lines "
        "jobs.consolidate jobs.run maintenance.accept_journal "
        "maintenance.journal_state maintenance.rebuild "
        "maintenance.rebuild_embeddings maintenance.retry_embeddings verify"
    ),
    "see test_an_edge_with_a_hidden_side_is_not_there": (
        "contradictions.accept contradictions.dismiss contradictions.reopen contradictions.resolve"
    ),
    "takes what the caller says and gives its own id: see tests/service/test_orchestrator.py": (
        "events.publish remember_many save_episode save_episodes sessions.end"
    ),
    "the ingest pipeline's: it is handed what it works on": (
        "ingestion.give_up ingestion.on_behalf ingestion.reject ingestion.store "
        "ingestion.stored ingestion.under_way"
    ),
    "one outcome each: see test_nothing_hidden_is_forgotten": "memories.forget",
    "by hash, and by who sent them: tests/isolation/sent_files.py": (
        "ingestion.get ingestion.list"
    ),
    "writes to the log and gives nothing": "ingestion.log_event",
    "asks as entities.get does: tests/service/test_entities.py and test_decaying.py": (
        "entities.merge entities.protect entities.remove_alias"
    ),
    "the requests of an entity: tests/surfaces/http/test_http_agent_memory.py": (
        "agent_memory.forget agent_memory.list_items agent_memory.retrieve agent_memory.store"
    ),
    "the hooks of a turn, on every route: tests/isolation/test_routes_walked.py": (
        "turns.end_task turns.on_diagnostics turns.on_message turns.on_step "
        "turns.on_step_output turns.on_transcript turns.record_findings"
    ),
    "read with receipts.bulletins": "receipts.bulletin",
    "its outcome names nothing hidden: tests/service/test_comparisons.py": "memories.store",
    "the host's own: its callbacks get the id of every session": (
        "events.subscribe events.unsubscribe"
    ),
}
"""By the reason why a method is not walked here: the methods."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryService, World]]:
    with working(tmp_path_factory.mktemp("canaries")) as service:
        world = built(service, "one")
        service.orchestrator("one").settle()
        yield service, world


@pytest.fixture
def service(place: tuple[MemoryService, World]) -> MemoryService:
    return place[0]


@pytest.fixture
def world(place: tuple[MemoryService, World]) -> World:
    return place[1]


def test_every_public_method_is_looked_at() -> None:
    public = members_of(Orchestrator).keys()
    elsewhere = [name for names in ELSEWHERE.values() for name in names.split()]
    named = [*READS, *COUNTS, *REFUSED, *elsewhere]
    assert len(named) == len(set(named))
    assert set(named) == public


@pytest.mark.parametrize(
    ("method", "reader"),
    [(method, each) for at, method in enumerate(READS) for each in third([*READERS], at)],
)
def test_nothing_hidden_is_read(
    service: MemoryService, world: World, method: str, reader: str
) -> None:
    orc = service.orchestrator("one", viewer=READERS[reader])
    forbidden = world.forbidden(orc.viewer)
    assert forbidden
    told = [text for each in READS[method](orc, world) for text in texts(each)]
    assert leaks(told, forbidden) == set()


@pytest.mark.parametrize("method", READS)
def test_every_path_that_is_walked_leads_somewhere(
    service: MemoryService, world: World, method: str
) -> None:
    orc = service.orchestrator("one", viewer=EVERYTHING)
    hidden = frozenset[str]().union(*map(world.forbidden, READERS.values()))
    # Each shows to whoever may see all what it would have leaked to the others.
    assert any(leaks(texts(each), hidden) for each in READS[method](orc, world))


@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_hidden_is_read(service: MemoryService, world: World, reader: str) -> None:
    orc = service.orchestrator("one", viewer=READERS[reader])
    shown = {each.word for each in world.seen(orc.viewer)}
    assert shown <= words_in(texts(orc.memories.list(statuses=(), limit=1000)))


@pytest.mark.parametrize("method", COUNTS)
def test_numbers_tell_no_words(service: MemoryService, world: World, method: str) -> None:
    orc = service.orchestrator("one", viewer=EVERYTHING)
    told = [text for each in COUNTS[method](orc, world) for text in texts(each)]
    assert told
    assert words_in(told) == set()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("method", REFUSED)
def test_nothing_hidden_is_changed(
    service: MemoryService, world: World, method: str, reader: str
) -> None:
    orc = service.orchestrator("one", viewer=READERS[reader])
    own = world.seen(orc.viewer)[0].memory_id
    forbidden = world.forbidden(orc.viewer)
    for each in world.hidden(orc.viewer)[::5]:
        with pytest.raises((NotFound, AccessDenied)) as raised:
            REFUSED[method](orc, each.memory_id, own)
        # The id is the caller's own word.
        told = json.dumps(raised.value.as_dict()).replace(each.memory_id, "")
        assert leaks([told], forbidden) == set()


@pytest.mark.parametrize("reader", READERS)
def test_nothing_hidden_is_forgotten(service: MemoryService, world: World, reader: str) -> None:
    orc = service.orchestrator("one", viewer=READERS[reader])
    hidden = [each.memory_id for each in world.hidden(orc.viewer)[::5]]
    owner = service.orchestrator("one", viewer=EVERYTHING)
    before = [owner.get(each).status for each in hidden]
    told = orc.memories.forget(hidden, reason="x")
    assert [each.outcome for each in told] == ["rejected"] * len(hidden)
    assert {each.code for each in told} == {NotFound.code}
    assert [owner.get(each).status for each in hidden] == before


@pytest.mark.parametrize("reader", READERS)
def test_an_edge_with_a_hidden_side_is_not_there(
    service: MemoryService, world: World, reader: str
) -> None:
    orc = service.orchestrator("one", viewer=READERS[reader])
    hidden = {each.memory_id for each in world.hidden(orc.viewer)}
    for edge, one, other in [each for each in world.edges if {*each[1:]} & hidden][::9]:
        for change in (
            lambda edge=edge, one=one: orc.contradictions.resolve(edge, winner=one, reason="x"),
            lambda edge=edge: orc.contradictions.accept(edge, reason="x"),
            lambda edge=edge: orc.contradictions.dismiss(edge, reason="x"),
            lambda edge=edge: orc.contradictions.reopen(edge, reason="x"),
            lambda edge=edge: orc.contradictions.get(edge),
        ):
            with pytest.raises(NotFound) as raised:
                change()
            told = json.dumps(raised.value.as_dict())
            assert one not in told
            assert other not in told


def test_a_turn_is_told_of_its_task_and_project_alone(service: MemoryService, world: World) -> None:
    viewer = Viewer(session_ids=frozenset({TASKS[0]}), project_ids=frozenset({PROJECTS[0]}))
    where = {"task_id": TASKS[0], "project_id": PROJECTS[0]}
    forbidden = world.forbidden(viewer)
    with MemoryHooks(service, "one", deadline_ms=60_000) as hooks:
        message = hooks.on_message(QUERY, conversation_id="talk", **where)
        step = hooks.on_step(QUERY, workflow_run_id="run", step_id="s", **where)
        hidden = [each.memory_id for each in world.hidden(viewer)]
        evidence = hooks.on_diagnostics(QUERY, max_nodes=200)
        asked = hooks.on_diagnostics(QUERY, memory_ids=hidden[:20])
        other = hooks.on_message(QUERY, conversation_id="talk", orchestrator="two")
    told = [*texts(message), *texts(step)]
    assert words_in(told)
    assert leaks(told, forbidden) == set()
    for each in (evidence, asked):
        printed = json.dumps(each.model_dump(mode="json"))
        for one in hidden[:20]:
            printed = printed.replace(one, "")
        assert leaks([printed], world.forbidden(Viewer())) == set()
    assert words_in(texts(other)) == set()


def test_an_export_holds_one_orchestrator_alone(service: MemoryService, world: World) -> None:
    """Export is the operator's: all of one database, whoever's handle, and nothing of another."""
    other = built(service, "two", prefix="b")
    told = {
        name: words_in(
            line.decode()
            for line in service.orchestrator(name).exchange.export_lines(with_vectors=True)
        )
        for name in ("one", "two")
    }
    shared = {*TASKS, *PROJECTS, "Kxagena", "Kxagenb"}
    for name, own in (("one", world), ("two", other)):
        words = {word for each in own.canaries for word in each.words}
        assert words <= told[name]
    assert told["one"] & told["two"] == shared


def test_another_orchestrator_is_told_nothing(service: MemoryService, world: World) -> None:
    orc = service.orchestrator("three", create=True, viewer=EVERYTHING)
    nothing = World(sessions=world.sessions, at=world.at)
    for name, walk in READS.items():
        told = [text for each in walk(orc, nothing) for text in texts(each)]
        assert words_in(told) - EVERYTHING.session_ids - EVERYTHING.project_ids == set(), name
    for each in world.canaries[::10]:
        with pytest.raises(NotFound):
            orc.get(each.memory_id)
