"""For each route the requests that would show what is hidden, if anything did.

Keyed by method and path: a route without an entry fails ``test_every_route_is_walked``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from canaries import PROJECTS, QUERY, TASKS, World
from served_worlds import ABSENT, Ask

from memgraph import Viewer
from memgraph.clock import iso

HERE = "/v1/orchestrators/{orchestrator}"
TELLS = "keeps the launch plan and tells nobody."
WHY = {"reason": "asked"}


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
    def own_of_a_task(self) -> list[str]:
        """Those of them that are facts of a task, which may be promoted."""
        return [
            each.memory_id
            for each in self.world.seen(self.viewer)
            if each.facts.scope == "session" and each.memory_id.startswith("fact_")
        ][-3:]

    @property
    def hidden(self) -> list[str]:
        """Ids that it may not, of this orchestrator and of the other, the absent one last."""
        near = [each.memory_id for each in self.world.hidden(self.viewer)]
        far = [each.memory_id for each in self.other.canaries]
        return [*near[::13], far[0], ABSENT]

    @property
    def hidden_of_a_task(self) -> list[str]:
        """Ids of hidden facts of a task: somebody who sees them may promote them."""
        return [
            each.memory_id
            for each in self.world.hidden(self.viewer)
            if each.facts.scope == "session" and each.memory_id.startswith("fact_")
        ][-3:]

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


Walk = Callable[[View], Iterator[Ask]]
WALKS: dict[tuple[str, str], Walk] = {}


def walks(method: str, path: str) -> Callable[[Walk], Walk]:
    def add(walk: Walk) -> Walk:
        WALKS[method, path] = walk
        return walk

    return add


def _get(path: str, **params: Any) -> Ask:
    return Ask("GET", HERE + path, params)


def _post(path: str, body: Any, **params: Any) -> Ask:
    return Ask("POST", HERE + path, params, body)


# --- memories


@walks("POST", HERE + "/memories")
def remember(view: View) -> Iterator[Ask]:
    yield _post("/memories", {"content": "Nothing much."})
    for one in view.hidden[:4]:
        yield _post("/memories", {"content": "Derived.", "derived_from": [one]})
    for canary in view.world.hidden(view.viewer)[::15]:
        # The same text: it must be a memory of its own, not the hidden one's id.
        yield _post(
            "/memories", {"content": f"{canary.word} keeps the launch plan and tells nobody."}
        )


@walks("POST", HERE + "/memories/batch")
def remember_many(view: View) -> Iterator[Ask]:
    yield _post("/memories/batch", {"items": [{"content": "Of many."}]})
    derived = [{"content": "Derived.", "derived_from": [one]} for one in view.hidden[:3]]
    yield _post("/memories/batch", {"items": derived})
    for canary in islice(view.world.hidden(view.viewer), 0, None, 15):
        content = f"{canary.word} {TELLS}"
        yield _post("/memories/batch", {"items": [{"content": content}]})


@walks("GET", HERE + "/memories")
def list_memories(view: View) -> Iterator[Ask]:
    yield _get("/memories", limit=1000)
    yield _get("/memories", tag="launch", limit=1000)
    for kind in ("fact", "episode", "reflection"):
        yield _get("/memories", kind=kind, limit=200)
    for word in view.words:
        yield _get("/memories", tag=word)
        yield _get("/memories", session_id=f"talk-{word}")
    for talk in view.talks[:2]:
        yield _get("/memories", session_id=talk)
    for one in view.hidden[:2]:
        yield _get("/memories", cursor=one)


@walks("GET", HERE + "/memories/{memory_id}")
def get(view: View) -> Iterator[Ask]:
    for one in [*view.own[:3], *view.hidden]:
        yield _get(f"/memories/{one}")
        yield replace(_get(f"/memories/{one}"), headers={"If-None-Match": "*"})


@walks("GET", HERE + "/memories/{memory_id}/trace")
def trace(view: View) -> Iterator[Ask]:
    for one in [*view.own[:8], *view.hidden]:
        yield _get(f"/memories/{one}/trace")


@walks("GET", HERE + "/memories/{memory_id}/history")
def history(view: View) -> Iterator[Ask]:
    for one in [*view.own[:8], *view.hidden]:
        yield _get(f"/memories/{one}/history")


@walks("GET", HERE + "/diff")
def diff(view: View) -> Iterator[Ask]:
    yield _get("/diff", since="2000-01-01", until="2100-01-01", limit=1_000)
    yield _get("/diff", since="2000-01-01", until=iso(view.world.at), limit=1)


@walks("GET", HERE + "/memories/{memory_id}/impact")
def impact(view: View) -> Iterator[Ask]:
    for one in [*view.own[:8], *view.hidden]:
        yield _get(f"/memories/{one}/impact")


@walks("GET", HERE + "/memories/{memory_id}/lines")
def source_lines(view: View) -> Iterator[Ask]:
    for one in [*view.own[:8], *view.hidden]:
        yield _get(f"/memories/{one}/lines")


@walks("GET", HERE + "/grounds")
def grounds(view: View) -> Iterator[Ask]:
    for one in [*view.own[:8], *view.hidden]:
        yield _get("/grounds", memory_id=one, lines=100)
    yield _get("/grounds", workflow_run_id="run-1", lines=100)


def _changes(view: View, change: str, body: Any, own: int) -> Iterator[Ask]:
    for one in [*view.own[own : own + 1], *view.hidden]:
        yield _post(f"/memories/{one}/{change}", body)


@walks("POST", HERE + "/memories/{memory_id}/correct")
def correct(view: View) -> Iterator[Ask]:
    yield from _changes(view, "correct", {"content": "Another.", **WHY}, own=0)


@walks("POST", HERE + "/memories/{memory_id}/confirm")
def confirm(view: View) -> Iterator[Ask]:
    yield from _changes(view, "confirm", {}, own=1)


@walks("POST", HERE + "/memories/{memory_id}/retract")
def retract(view: View) -> Iterator[Ask]:
    yield from _changes(view, "retract", WHY, own=2)


@walks("POST", HERE + "/memories/{memory_id}/restore")
def restore(view: View) -> Iterator[Ask]:
    yield from _changes(view, "restore", WHY, own=2)


@walks("POST", HERE + "/memories/{memory_id}/promote")
def promote(view: View) -> Iterator[Ask]:
    for to, scope_id in (("global", None), ("project", PROJECTS[1])):
        body = {"to": to, "scope_id": scope_id, "confirmed": True, **WHY}
        for one in [*view.own_of_a_task[:1], *view.hidden_of_a_task, *view.hidden]:
            yield _post(f"/memories/{one}/promote", body)


# --- the graph


@walks("POST", HERE + "/edges")
def relate(view: View) -> Iterator[Ask]:
    for own in view.own[6:7]:
        for other in [*view.own[8:9], *view.hidden[:6]]:
            yield _post("/edges", {"from_id": own, "to_id": other, "edge_type": "RelatedTo"})
            yield _post("/edges", {"from_id": other, "to_id": own, "edge_type": "CausedBy"})


@walks("POST", HERE + "/subgraph")
def subgraph(view: View) -> Iterator[Ask]:
    yield _post("/subgraph", {"ids": view.own, "hops": 4, "max_nodes": 500})
    yield _post("/subgraph", {"ids": view.own, "hops": 2, "as_of": view.world.at})
    yield _post("/subgraph", {"ids": view.hidden, "hops": 4})


@walks("GET", HERE + "/contradictions")
def contradictions(view: View) -> Iterator[Ask]:
    for resolved in (False, True):
        yield _get("/contradictions", resolved=resolved, limit=500)
        yield _get("/contradictions", resolved=resolved, limit=500, as_of=iso(view.world.at))
        yield _get("/contradictions", resolved=resolved, limit=500, changes=True)
    for edge, _, _ in view.hidden_edges[:2]:
        yield _get("/contradictions", cursor=edge)
        yield _get("/contradictions", cursor=f"{view.world.at + 1}.{edge}")


@walks("GET", HERE + "/contradictions/{edge_id}")
def case(view: View) -> Iterator[Ask]:
    for edge, *_ in [*view.world.edges[::12], *view.hidden_edges]:
        yield _get(f"/contradictions/{edge}")
        yield _get(f"/contradictions/{edge}", as_of=iso(view.world.at))
    for edge, one, _ in view.hidden_edges[:4]:
        yield _get(f"/contradictions/{edge[-6:]}")
        yield _get(f"/contradictions/{one[-6:]}")


@walks("POST", HERE + "/contradictions/{edge_id}/accept")
def accept(view: View) -> Iterator[Ask]:
    for edge, _, _ in view.hidden_edges:
        yield _post(f"/contradictions/{edge}/accept", WHY)
    yield _post(f"/contradictions/{view.made['mark']}/accept", WHY)


@walks("POST", HERE + "/contradictions/{edge_id}/dismiss")
def dismiss(view: View) -> Iterator[Ask]:
    for edge, _, _ in view.hidden_edges:
        yield _post(f"/contradictions/{edge}/dismiss", WHY)


@walks("POST", HERE + "/contradictions/{edge_id}/resolve")
def resolve(view: View) -> Iterator[Ask]:
    for edge, one, _ in view.hidden_edges:
        yield _post(f"/contradictions/{edge}/resolve", {"winner": one, **WHY})


@walks("POST", HERE + "/contradictions/{edge_id}/reopen")
def reopen(view: View) -> Iterator[Ask]:
    for edge, _, _ in view.hidden_edges:
        yield _post(f"/contradictions/{edge}/reopen", WHY)


# --- asking


@walks("POST", HERE + "/recall")
def recall(view: View) -> Iterator[Ask]:
    yield _post("/recall", {"query": QUERY, "top_n": 200})
    for more in (
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
        yield _post("/recall", {"query": QUERY, "top_n": 200, **more})
    for word in view.words[:5]:
        yield _post("/recall", {"query": word, "top_n": 5})
        yield _post("/recall", {"tags": [word], "top_n": 5})
        yield _post("/recall", {"session_id": f"talk-{word}", "top_n": 5})
        yield _post("/recall", {"conversation_id": word, "top_n": 5})


@walks("GET", HERE + "/bulletin")
def bulletin(view: View) -> Iterator[Ask]:
    yield _get("/bulletin")
    yield replace(_get("/bulletin"), headers={"If-None-Match": "*"})


# --- the hooks of a turn


def _placed(path: str, **body: Any) -> Iterator[Ask]:
    fields = {"deadline_ms": 30_000, **body}
    yield _post(path, fields)
    for project in PROJECTS:
        yield _post(path, {**fields, "project_id": project})
    for task in TASKS:
        yield _post(path, {**fields, "task_id": task})


RUN = {"workflow_run_id": "run", "step_id": "step"}
OF_TASK = {"request": {"shares": {"task": 1, "project": 0, "global_tier": 0}}}


@walks("POST", HERE + "/turns/message")
def on_message(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/message", content=QUERY, conversation_id="a new one")
    # A conversation is a task as well.
    for task in TASKS:
        for wanted in ({}, OF_TASK):
            fields = {"content": QUERY, "conversation_id": task, "deadline_ms": 30_000}
            yield _post("/turns/message", fields | wanted)


@walks("POST", HERE + "/turns/step")
def on_step(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/step", prompt=QUERY, **RUN)
    for task in TASKS:
        for place in ({"workflow_run_id": task}, {**RUN, "conversation_id": task}):
            yield from _placed("/turns/step", prompt=QUERY, **RUN | place)


@walks("POST", HERE + "/turns/output")
def on_step_output(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/output", output="Decision: we launch.", **RUN)
    for canary in view.world.hidden(view.viewer)[::15]:
        # The same text: it must be a memory of its own, not the hidden one's id.
        yield _post("/turns/output", {"output": f"{canary.word} {TELLS}", **RUN})


@walks("POST", HERE + "/turns/transcript")
def on_transcript(view: View) -> Iterator[Ask]:
    turns = [{"content": "We launch.", "source_role": "user", "turn_id": "1"}]
    yield from _placed("/turns/transcript", turns=turns, conversation_id="a new one")


@walks("POST", HERE + "/turns/diagnostics")
def on_diagnostics(view: View) -> Iterator[Ask]:
    yield from _placed("/turns/diagnostics", question=QUERY, memory_ids=view.hidden)


@walks("POST", HERE + "/turns/findings")
def record_findings(view: View) -> Iterator[Ask]:
    for one in view.hidden[:4]:
        for fields in ({"caused_by": [one]}, {}):
            finding = {"content": f"It was the launch, says {one}.", **fields}
            yield _post("/turns/findings", {"findings": [finding], "memory_ids": [one]})
    yield _post("/turns/findings", {"findings": [{"content": "It was the plan."}]})


@walks("POST", HERE + "/turns/end")
def end_task(view: View) -> Iterator[Ask]:
    for task in (*TASKS, "a new one"):
        yield _post("/turns/end", {"task_id": task, "deadline_ms": 30_000, **RUN})
        place = {"task_id": task, "project_id": PROJECTS[0], "deadline_ms": 30_000}
        yield _post("/turns/end", {**place, "promote": view.hidden[:4]})


AGENTS = ("Kxagena", "Kxagenb", "nobody")


def _asked_of_agents(name: str, *bodies: dict[str, Any]) -> Iterator[Ask]:
    for agent in AGENTS:
        for body in bodies:
            yield _post(f"/agents/{agent}/memory/{name}", body)
            for place in (*PROJECTS, *TASKS):
                yield _post(f"/agents/{agent}/memory/{name}", {**body, "projectId": place})
                yield _post(f"/agents/{agent}/memory/{name}", {**body, "sessionId": place})


@walks("POST", HERE + "/agents/{agent_id}/memory/retrieve")
def retrieve_items(view: View) -> Iterator[Ask]:
    yield from _asked_of_agents("retrieve", {"query": QUERY, "limit": 200})


@walks("POST", HERE + "/agents/{agent_id}/memory/listItems")
def list_items(view: View) -> Iterator[Ask]:
    yield from _asked_of_agents("listItems", {"limit": 200})


@walks("POST", HERE + "/agents/{agent_id}/memory/store")
def store_items(view: View) -> Iterator[Ask]:
    known = {"tier": "SemanticMemory", "source": "UserSource"}
    for agent in AGENTS:
        for canary in view.world.hidden(view.viewer)[::30]:
            item = {**known, "scope": "GlobalScope", "content": f"{canary.word} {TELLS}"}
            yield _post(f"/agents/{agent}/memory/store", {"items": [item]})
        for place in TASKS:
            item = {**known, "scope": "SessionScope", "sessionId": place, "content": "Of a task."}
            yield _post(f"/agents/{agent}/memory/store", {"items": [item]})


@walks("POST", HERE + "/agents/{agent_id}/memory/forget")
def forget_items(view: View) -> Iterator[Ask]:
    for agent in AGENTS:
        yield _post(f"/agents/{agent}/memory/forget", {"itemIds": view.hidden})


@walks("GET", HERE + "/reflection")
def reflection(view: View) -> Iterator[Ask]:
    yield _get("/reflection")


@walks("GET", HERE + "/receipts")
def receipts(view: View) -> Iterator[Ask]:
    yield _get("/receipts", limit=200)
    for one in TASKS:
        yield _get("/receipts", task_id=one)


@walks("GET", HERE + "/receipts/{receipt_id}")
def receipt(view: View) -> Iterator[Ask]:
    for one in (view.made["receipt"], view.made["far_receipt"], "rcp_00000000000000000000000000"):
        yield _get(f"/receipts/{one}")


@walks("GET", HERE + "/bulletins")
def bulletins(view: View) -> Iterator[Ask]:
    yield _get("/bulletins", limit=200)
    for one in (view.made["bulletin"], view.made["far_bulletin"]):
        yield _get("/bulletins", before=one)


@walks("GET", HERE + "/bulletins/{bulletin_id}")
def bulletin_issued(view: View) -> Iterator[Ask]:
    for one in (view.made["bulletin"], view.made["far_bulletin"], "bul_0"):
        yield _get(f"/bulletins/{one}")
