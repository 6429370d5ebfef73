"""For each route the requests that would show what is hidden, if anything did.

Keyed by method and path: a route without an entry fails ``test_every_route_is_walked``. Of ids, the
first may be seen and the last is nobody's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from canaries import PROJECTS, QUERY, TASKS, World
from served_worlds import ABSENT, ONE, TWO, Ask

from memgraph import Viewer
from memgraph.clock import iso
from memgraph.model.enums import JobName

MAKING = "/v1/orchestrators"
HERE = f"{MAKING}/{{orchestrator}}"
TELLS = "keeps the launch plan and tells nobody."
WHY = {"reason": "asked"}
AGENTS = ("Kxagena", "Kxagenb", "nobody")


@dataclass(frozen=True)
class View:
    """What a walker knows of the world: all of it, as an attacker who guesses well would."""

    world: World
    other: World
    viewer: Viewer
    made: dict[str, Any]

    @property
    def own(self) -> list[str]:
        """Ids of memories that the asker may see."""
        return [each.memory_id for each in self.world.seen(self.viewer)]

    @property
    def own_words(self) -> list[str]:
        """Words of such memories, which are entities' names."""
        return [each.word for each in self.world.seen(self.viewer)[:3]]

    @property
    def own_of_a_task(self) -> list[str]:
        """Those of them that are facts of a task, which may be promoted."""
        return self._of_a_task(self.own)

    @property
    def hidden(self) -> list[str]:
        """Ids that it may not, of this orchestrator and of the other, the absent one last."""
        near = [each.memory_id for each in self.world.hidden(self.viewer)]
        far = [each.memory_id for each in self.other.canaries]
        return [*near[::13], far[0], ABSENT]

    @property
    def hidden_of_a_task(self) -> list[str]:
        """Ids of hidden facts of a task: somebody who sees them may promote them."""
        return self._of_a_task([each.memory_id for each in self.world.hidden(self.viewer)])

    def _of_a_task(self, ids: list[str]) -> list[str]:
        scopes = {each.memory_id: each.facts.scope for each in self.world.canaries}
        facts = [each for each in ids if each.startswith("fact_")]
        return [each for each in facts if scopes[each] == "session"][-3:]

    @property
    def hidden_texts(self) -> list[str]:
        """Texts of hidden memories: each is to be a memory of its own, not the hidden one's id."""
        return [f"{each.word} {TELLS}" for each in self.world.hidden(self.viewer)[::15]]

    @property
    def talks(self) -> list[str]:
        """Names of conversations of which every turn is hidden."""
        hidden = {f"talk-{each.word}" for each in self.world.hidden(self.viewer)}
        return [each for each in self.world.sessions if each in hidden]

    @property
    def files(self) -> list[str]:
        """Digests of files that an owner sent here and to the other, the absent one last."""
        return [*self.made["files"], self.made["far_file"], "0" * 64]

    @property
    def words(self) -> list[str]:
        """Words of what may not be seen: they are entities' names and sessions' names, too."""
        return sorted(
            word
            for each in [*self.world.hidden(self.viewer)[::9], *self.other.canaries[::30]]
            for word in each.words
        )[::3]

    @property
    def hidden_edges(self) -> list[tuple[str, str, str]]:
        """(edge id, one side, the other) of edges that lead to what is hidden."""
        ids = {each.memory_id for each in self.world.hidden(self.viewer)}
        found = [each for each in self.world.edges if {each[1], each[2]} & ids]
        contradictions = [each for each in found if each[0] in self.made["contradictions"]]
        # Some are open, so that each way to decide one finds its own.
        return [*contradictions[:6], *found[::30], self.other.edges[0]]


Walk = Callable[[View], Iterable[Ask]]
WALKS: dict[tuple[str, str], Walk] = {}


def walks(method: str, path: str) -> Callable[[Walk], Walk]:
    def add(walk: Walk) -> Walk:
        WALKS[method, HERE + path] = walk
        return walk

    return add


def _get(path: str, **params: Any) -> Ask:
    return Ask("GET", HERE + path, params)


def _gets(path: str, names: Iterable[str]) -> list[Ask]:
    """One request for each name, which stands in the path for ``{}``."""
    return [_get(path.format(name)) for name in names]


def _lists(path: str, name: str, values: Iterable[str], **params: Any) -> list[Ask]:
    """One request for each value of a parameter."""
    return [_get(path, **params, **{name: value}) for value in values]


def _post(path: str, *bodies: Any) -> list[Ask]:
    return [Ask("POST", HERE + path, body=body) for body in bodies]


def _posts(path: str, names: Iterable[str], body: Any) -> list[Ask]:
    return [ask for name in names for ask in _post(path.format(name), body)]


def _ids(view: View) -> list[str]:
    return [*view.own[:8], *view.hidden]


def _edges(view: View) -> list[str]:
    return [edge for edge, *_ in view.hidden_edges]


# --- memories


@walks("POST", "/memories")
def remember(view: View) -> list[Ask]:
    derived = ({"content": "Derived.", "derived_from": [one]} for one in view.hidden[:4])
    same = ({"content": text} for text in view.hidden_texts)
    return _post("/memories", {"content": "Nothing much."}, *derived, *same)


@walks("POST", "/memories/batch")
def remember_many(view: View) -> list[Ask]:
    derived = [{"content": "Derived.", "derived_from": [one]} for one in view.hidden[:3]]
    same = ([{"content": text}] for text in view.hidden_texts)
    batches = ([{"content": "Of many."}], derived, *same)
    return _post("/memories/batch", *({"items": items} for items in batches))


@walks("GET", "/memories")
def list_memories(view: View) -> Iterator[Ask]:
    yield _get("/memories", limit=1000)
    yield _get("/memories", tag="launch", limit=1000)
    yield from _lists("/memories", "kind", ("fact", "episode", "reflection"), limit=200)
    yield from _lists("/memories", "tag", view.words)
    sessions = [f"talk-{word}" for word in view.words]
    yield from _lists("/memories", "session_id", [*sessions, *view.talks[:2]])
    yield from _lists("/memories", "cursor", view.hidden[:2])


@walks("GET", "/diff")
def diff(view: View) -> Iterator[Ask]:
    yield _get("/diff", since="2000-01-01", until="2100-01-01", limit=1_000)
    yield _get("/diff", since="2000-01-01", until=iso(view.world.at), limit=1)


def _changes(change: str, body: Any, own: int) -> Walk:
    """A walk that changes one memory of the asker's own, and all that are hidden."""
    return lambda view: _posts(
        f"/memories/{{}}/{change}", [*view.own[own : own + 1], *view.hidden], body
    )


@walks("POST", "/memories/{memory_id}/promote")
def promote(view: View) -> Iterator[Ask]:
    for to, scope_id in (("global", None), ("project", PROJECTS[1])):
        body = {"to": to, "scope_id": scope_id, "confirmed": True, **WHY}
        ids = [*view.own_of_a_task[:1], *view.hidden_of_a_task, *view.hidden]
        yield from _posts("/memories/{}/promote", ids, body)


# --- the graph


@walks("POST", "/edges")
def relate(view: View) -> Iterator[Ask]:
    [own] = view.own[6:7] or [None]
    for other in [*view.own[8:9], *view.hidden[:6]] if own else []:
        yield from _post(
            "/edges",
            {"from_id": own, "to_id": other, "edge_type": "RelatedTo"},
            {"from_id": other, "to_id": own, "edge_type": "CausedBy"},
        )


@walks("GET", "/contradictions")
def contradictions(view: View) -> Iterator[Ask]:
    for resolved in (False, True):
        yield _get("/contradictions", resolved=resolved, limit=500)
        yield _get("/contradictions", resolved=resolved, limit=500, as_of=iso(view.world.at))
        yield _get("/contradictions", resolved=resolved, limit=500, changes=True)
    for edge in _edges(view)[:2]:
        yield from _lists("/contradictions", "cursor", (edge, f"{view.world.at + 1}.{edge}"))


@walks("GET", "/contradictions/{edge_id}")
def case(view: View) -> Iterator[Ask]:
    for edge, *_ in [*view.world.edges[::12], *view.hidden_edges]:
        yield _get(f"/contradictions/{edge}")
        yield _get(f"/contradictions/{edge}", as_of=iso(view.world.at))
    for edge, one, _ in view.hidden_edges[:4]:
        yield from _gets("/contradictions/{}", (edge[-6:], one[-6:]))


@walks("POST", "/contradictions/{edge_id}/resolve")
def resolve(view: View) -> Iterator[Ask]:
    for edge, one, _ in view.hidden_edges:
        yield from _post(f"/contradictions/{edge}/resolve", {"winner": one, **WHY})


# --- asking


@walks("POST", "/recall")
def recall(view: View) -> Iterator[Ask]:
    for more in (
        {},
        {"kinds": ["fact", "episode", "reflection"]},
        {"include_superseded": True},
        {"as_of": view.world.at},
        {"token_budget": 10_000},
        # What only narrows cannot widen.
        {"clearance": "Restricted"},
        {"project_ids": list(PROJECTS)},
        {"session_scope_ids": list(TASKS)},
        {"agent_id": "Kxagenb"},
        {"project_ids": ["*"], "session_scope_ids": ["*"]},
    ):
        yield from _post("/recall", {"query": QUERY, "top_n": 200, **more})
    for word in view.words[:5]:
        asked = ({"query": word}, {"tags": [word]}, {"session_id": f"talk-{word}"})
        yield from _post("/recall", *(each | {"top_n": 5} for each in asked))
        yield from _post("/recall", {"conversation_id": word, "top_n": 5})


@walks("POST", "/context")
def context(view: View) -> Iterator[Ask]:
    wanted = {"query": QUERY, "budget_tokens": 50_000}
    yield from _post("/context", {"task": None, **wanted})
    for task in (*TASKS, "Kxother"):
        yield from _post("/context", {"task": task, **wanted})
        for project in PROJECTS:
            both = {"task_id": task, "project_id": project}
            said = {"task_id": task, "metadata": {"project_id": project}}
            yield from _post("/context", *({"task": each, **wanted} for each in (both, said)))


NARROWED = ({"agent_id": "Kxagena"}, {"agent_id": "Kxagenb"})


@walks("GET", "/tiers/{tier}")
def tier(view: View) -> Iterator[Ask]:
    yield _get("/tiers/global", limit=1000)
    for name, scope_ids in (("task", TASKS), ("session", TASKS), ("project", PROJECTS)):
        yield from _lists(f"/tiers/{name}", "scope_id", scope_ids, limit=1000)


# --- the hooks of a turn


def _placed(path: str, **body: Any) -> list[Ask]:
    places = ({}, *({"project_id": each} for each in PROJECTS), *({"task_id": e} for e in TASKS))
    return _post(path, *({"deadline_ms": 30_000, **body, **place} for place in places))


RUN = {"workflow_run_id": "run", "step_id": "step"}
OF_TASK = {"request": {"shares": {"task": 1, "project": 0, "global_tier": 0}}}


@walks("POST", "/turns/message")
def on_message(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/message", content=QUERY, conversation_id="a new one")
    # A conversation is a task as well.
    for task, wanted in product(TASKS, ({}, OF_TASK)):
        fields = {"content": QUERY, "conversation_id": task, "deadline_ms": 30_000}
        yield from _post("/turns/message", fields | wanted)


@walks("POST", "/turns/step")
def on_step(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/step", prompt=QUERY, **RUN)
    for task in TASKS:
        for place in ({"workflow_run_id": task}, {**RUN, "conversation_id": task}):
            yield from _placed("/turns/step", prompt=QUERY, **RUN | place)


@walks("POST", "/turns/output")
def on_step_output(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/output", output="Decision: we launch.", **RUN)
    yield from _post("/turns/output", *({"output": text, **RUN} for text in view.hidden_texts))


@walks("POST", "/turns/transcript")
def on_transcript(view: View) -> list[Ask]:
    turns = [{"content": "We launch.", "source_role": "user", "turn_id": "1"}]
    return _placed("/turns/transcript", turns=turns, conversation_id="a new one")


@walks("POST", "/turns/findings")
def record_findings(view: View) -> Iterator[Ask]:
    for one, fields in product(view.hidden[:4], (True, False)):
        finding = {"content": f"It was the launch, says {one}."}
        finding |= {"caused_by": [one]} if fields else {}
        yield from _post("/turns/findings", {"findings": [finding], "memory_ids": [one]})
    yield from _post("/turns/findings", {"findings": [{"content": "It was the plan."}]})


@walks("POST", "/turns/end")
def end_task(view: View) -> Iterator[Ask]:
    for task in (*TASKS, "a new one"):
        end = {"task_id": task, "deadline_ms": 30_000}
        further = {"project_id": PROJECTS[0], "promote": view.hidden[:4]}
        yield from _post("/turns/end", end | RUN, end | further)


# --- the memory of an agent


def _asked_of_agents(name: str, body: dict[str, Any]) -> Iterator[Ask]:
    for agent in AGENTS:
        yield from _post(f"/agents/{agent}/memory/{name}", body)
        for place in (*PROJECTS, *TASKS):
            bodies = ({**body, "projectId": place}, {**body, "sessionId": place})
            yield from _post(f"/agents/{agent}/memory/{name}", *bodies)


@walks("POST", "/agents/{agent_id}/memory/store")
def store_items(view: View) -> Iterator[Ask]:
    known = {"tier": "SemanticMemory", "source": "UserSource"}
    same = [{"scope": "GlobalScope", "content": text} for text in view.hidden_texts[::2]]
    inside = [{"scope": "SessionScope", "sessionId": place} for place in TASKS]
    items = [*same, *({**place, "content": "Of a task."} for place in inside)]
    for agent, item in product(AGENTS, items):
        yield from _post(f"/agents/{agent}/memory/store", {"items": [known | item]})


# --- conversations, entities, sources


def _turn(session: str, content: str = "Good morning.") -> dict[str, str]:
    return {"session_id": session, "content": content, "source_role": "user"}


@walks("POST", "/episodes")
def save_episode(view: View) -> list[Ask]:
    turns = (_turn(f"talk-{text.split()[0]}", text) for text in view.hidden_texts)
    return _post("/episodes", _turn("mine"), *turns)


@walks("POST", "/episodes/batch")
def save_episodes(view: View) -> list[Ask]:
    hidden = [_turn(f"talk-{word}", "Third.") for word in view.words[:3]]
    return _post("/episodes/batch", {"items": [_turn("mine", "Second.")]}, {"items": hidden})


@walks("GET", "/sessions")
def sessions(view: View) -> Iterator[Ask]:
    yield _get("/sessions", limit=1000)
    for pending in (False, True):
        yield _get("/sessions", pending=pending, limit=1000)
    yield from _lists("/sessions", "cursor", view.talks[:3])


@walks("POST", "/entities/merge")
def merge(view: View) -> Iterator[Ask]:
    own, second = view.own_words[:2]
    for other in (second, *view.words[:4]):
        for into, gone in ((own, other), (other, own)):
            yield from _post("/entities/merge", {"into": into, "other": gone, **WHY})


@walks("POST", "/entities/remove-alias")
def remove_alias(view: View) -> Iterator[Ask]:
    own, second = view.own_words[:2]
    pairs = [(own, second)]
    pairs += [pair for word in view.words[:3] for pair in ((word, word), (own, word))]
    for entity, alias in pairs:
        yield from _post("/entities/remove-alias", {"entity": entity, "alias": alias, **WHY})


@walks("GET", "/sources")
def list_sources(view: View) -> Iterator[Ask]:
    yield _get("/sources", limit=500)
    yield from _lists("/sources", "kind", ("path", "conversation", "run", "content"), limit=3)
    yield from _lists("/sources", "cursor", (f"conversation:{each}" for each in view.talks[:2]))


def _hidden_talks(view: View) -> list[str]:
    return [*view.talks[:4], *(f"talk-{word}" for word in view.words[:4])]


@walks("POST", "/sources/info")
def source_info(view: View) -> list[Ask]:
    hidden = ({"kind": "conversation", "name": talk} for talk in _hidden_talks(view))
    shared = {"kind": "run", "name": "run-1"}, {"kind": "path", "name": "/"}
    return _post("/sources/info", *hidden, *shared)


@walks("POST", "/sources/retract")
def retract_source(view: View) -> list[Ask]:
    previewed = [{"conversation_id": talk} for talk in _hidden_talks(view)]
    done = ({"conversation_id": talk, "dry_run": False} for talk in view.talks[-2:])
    asked = (*previewed, {"path": "/"}, *done)
    return _post("/sources/retract", *(each | WHY for each in asked))


# --- files, erasures


@walks("PUT", "/ingest/files/{name}")
def upload(view: View) -> Iterator[Ask]:
    for name in ("note.md", "..%2f..%2ftwo%2fnote.md", "%2e%2e", "a%00b.md", ".hidden"):
        path = f"{HERE}/ingest/files/{name}"
        yield Ask("PUT", path, content=b"# Plan\n\nShe keeps the plan.\n")
    # Each memory says where it would be: what its sender would not see is not stored.
    places = [{"scope": "session", "scope_id": one} for one in TASKS]
    places += [{"scope": "project", "scope_id": one} for one in PROJECTS]
    places += [{"sensitivity": each} for each in ("Public", "Restricted")]
    planted = [{"content": f"Planted {each}.", "type": "Fact", **each} for each in places]
    for name, memories in (("all.json", planted), ("last.json", planted[-1:])):
        content = json.dumps({"memories": memories}).encode()
        yield Ask("PUT", f"{HERE}/ingest/files/{name}", content=content)


@walks("POST", "/erase")
def erase(view: View) -> list[Ask]:
    # Who may erase sees everything: nothing is erased here that the other walks look for.
    wanted = [{"memory_id": each} for each in (*view.hidden[:2], "fact_none")]
    wanted += [{"entity": view.words[0]}]
    previewed = ({**each, **WHY, "dry_run": True} for each in wanted)
    return _post("/erase", *previewed, {"session_id": "none", **WHY, "dry_run": False})


_OTHERS: dict[tuple[str, str], Walk] = {
    ("GET", "/memories/{memory_id}"): lambda view: _gets(
        "/memories/{}", [*view.own[:3], *view.hidden]
    ),
    **{
        ("GET", f"/memories/{{memory_id}}/{part}"): lambda view, part=part: _gets(
            f"/memories/{{}}/{part}", _ids(view)
        )
        for part in ("trace", "history", "impact", "lines")
    },
    ("GET", "/grounds"): lambda view: [
        *_lists("/grounds", "memory_id", _ids(view), lines=100),
        _get("/grounds", workflow_run_id="run-1", lines=100),
    ],
    ("POST", "/memories/{memory_id}/correct"): _changes(
        "correct", {"content": "Another.", **WHY}, own=0
    ),
    ("POST", "/memories/{memory_id}/confirm"): _changes("confirm", {}, own=1),
    ("POST", "/memories/{memory_id}/retract"): _changes("retract", WHY, own=2),
    ("POST", "/memories/{memory_id}/restore"): _changes("restore", WHY, own=2),
    ("POST", "/forget"): lambda view: _post(
        "/forget", *({"memory_ids": ids, **WHY} for ids in (view.own[10:11], view.hidden))
    ),
    ("POST", "/subgraph"): lambda view: _post(
        "/subgraph",
        {"ids": view.own, "hops": 4, "max_nodes": 500},
        {"ids": view.own, "hops": 2, "as_of": view.world.at},
        {"ids": view.hidden, "hops": 4},
    ),
    ("POST", "/contradictions/{edge_id}/accept"): lambda view: _posts(
        "/contradictions/{}/accept", [*_edges(view), view.made["mark"]], WHY
    ),
    ("POST", "/contradictions/{edge_id}/dismiss"): lambda view: _posts(
        "/contradictions/{}/dismiss", _edges(view), WHY
    ),
    ("POST", "/contradictions/{edge_id}/reopen"): lambda view: _posts(
        "/contradictions/{}/reopen", _edges(view), WHY
    ),
    ("POST", "/context/block"): lambda view: _post(
        "/context/block",
        *({"prompt": QUERY, "budget_tokens": 20_000, **e} for e in ({}, {"kinds": []}, *NARROWED)),
    ),
    ("POST", "/ask"): lambda view: _post(
        "/ask",
        *(
            {"question": QUERY, "budget_tokens": 20_000, **each}
            for each in ({}, {"kinds": ["fact"]}, *NARROWED)
        ),
    ),
    ("GET", "/bulletin"): lambda view: [_get("/bulletin")],
    ("POST", "/turns/diagnostics"): lambda view: _placed(
        "/turns/diagnostics", question=QUERY, memory_ids=view.hidden
    ),
    ("POST", "/agents/{agent_id}/memory/retrieve"): lambda view: _asked_of_agents(
        "retrieve", {"query": QUERY, "limit": 200}
    ),
    ("POST", "/agents/{agent_id}/memory/listItems"): lambda view: _asked_of_agents(
        "listItems", {"limit": 200}
    ),
    ("POST", "/agents/{agent_id}/memory/forget"): lambda view: _posts(
        "/agents/{}/memory/forget", AGENTS, {"itemIds": view.hidden}
    ),
    ("GET", "/receipts"): lambda view: [
        _get("/receipts", limit=200),
        *_lists("/receipts", "task_id", TASKS),
    ],
    ("GET", "/receipts/{receipt_id}"): lambda view: _gets(
        "/receipts/{}", (view.made["receipt"], view.made["far_receipt"], "rcp_" + "0" * 26)
    ),
    ("GET", "/bulletins"): lambda view: [
        _get("/bulletins", limit=200),
        *_lists("/bulletins", "before", (view.made["bulletin"], view.made["far_bulletin"])),
    ],
    ("GET", "/bulletins/{bulletin_id}"): lambda view: _gets(
        "/bulletins/{}", (view.made["bulletin"], view.made["far_bulletin"], "bul_0")
    ),
    ("POST", "/sessions/end"): lambda view: _post(
        "/sessions/end", *({"session_id": each} for each in ("nothing", *view.talks[:3]))
    ),
    ("GET", "/entities"): lambda view: [
        _get("/entities", limit=1000),
        _get("/entities", prefix="kx", limit=1000),
    ],
    ("POST", "/entities/info"): lambda view: _post(
        "/entities/info",
        *(
            {"name": name, "limit": 100}
            for name in [*view.own_words, *view.words, *TASKS, *PROJECTS]
        ),
    ),
    ("POST", "/entities/protect"): lambda view: _post(
        "/entities/protect",
        *({"name": name, **WHY} for name in [*view.own_words[:1], *view.words[:3]]),
    ),
    ("GET", "/ingest/files"): lambda view: [
        _get("/ingest/files", limit=1000),
        _get("/ingest/files", limit=1),
        *_lists("/ingest/files", "cursor", view.files),
    ],
    ("GET", "/ingest/files/{sha256}"): lambda view: _gets("/ingest/files/{}", view.files),
    ("POST", "/jobs/{job}/run"): lambda view: _posts("/jobs/{}/run", JobName, {}),
    ("POST", "/verify"): lambda view: _post("/verify", {}),
    ("GET", "/erasures"): lambda view: [_get("/erasures", limit=200)],
    ("GET", "/jobs"): lambda view: [_get("/jobs", limit=1000)],
    ("GET", "/export"): lambda view: [_get("/export"), _get("/export", with_vectors=True)],
    **{
        ("GET", path): lambda view, path=path: [_get(path)]
        for path in ("", "/status", "/stats", "/reflection", "/jobs/plans", "/backup")
    },
}
WALKS |= {(method, HERE + path): walk for (method, path), walk in _OTHERS.items()}
WALKS["GET", MAKING] = lambda view: [Ask("GET", MAKING)]
WALKS["POST", MAKING] = lambda view: [
    Ask("POST", MAKING, body={"name": name})
    for name in (ONE, TWO, "three", "../two", "two/memory", "ONE")
]
