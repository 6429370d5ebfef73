"""Walks over the routes of conversations, entities, contexts, files, jobs and copies."""

from __future__ import annotations

import json
from collections.abc import Iterator

from canaries import PROJECTS, QUERY, TASKS
from route_walks import HERE, TELLS, WHY, View, _get, _post, walks
from served_worlds import ONE, TWO, Ask

from memgraph.model.enums import JobName

# --- orchestrators


@walks("GET", "/v1/orchestrators")
def list_orchestrators(view: View) -> Iterator[Ask]:
    yield Ask("GET", "/v1/orchestrators")


@walks("POST", "/v1/orchestrators")
def create_orchestrator(view: View) -> Iterator[Ask]:
    for name in (ONE, TWO, "three", "../two", "two/memory", "ONE"):
        yield Ask("POST", "/v1/orchestrators", body={"name": name})


@walks("GET", HERE)
def health(view: View) -> Iterator[Ask]:
    yield _get("")


@walks("GET", HERE + "/status")
def status(view: View) -> Iterator[Ask]:
    yield _get("/status")


@walks("GET", HERE + "/stats")
def stats(view: View) -> Iterator[Ask]:
    yield _get("/stats")


# --- conversations


def _turn(session: str, content: str = "Good morning.") -> dict[str, str]:
    return {"session_id": session, "content": content, "source_role": "user"}


@walks("POST", HERE + "/episodes")
def save_episode(view: View) -> Iterator[Ask]:
    yield _post("/episodes", _turn("mine"))
    for canary in view.world.hidden(view.viewer)[::15]:
        content = f"{canary.word} {TELLS}"
        yield _post("/episodes", _turn(f"talk-{canary.word}", content))


@walks("POST", HERE + "/episodes/batch")
def save_episodes(view: View) -> Iterator[Ask]:
    yield _post("/episodes/batch", {"items": [_turn("mine", "Second.")]})
    items = [_turn(f"talk-{word}", "Third.") for word in view.words[:3]]
    yield _post("/episodes/batch", {"items": items})


@walks("GET", HERE + "/sessions")
def sessions(view: View) -> Iterator[Ask]:
    yield _get("/sessions", limit=1000)
    for pending in (False, True):
        yield _get("/sessions", pending=pending, limit=1000)
    for talk in view.talks[:3]:
        yield _get("/sessions", cursor=talk)


@walks("POST", HERE + "/sessions/end")
def end_session(view: View) -> Iterator[Ask]:
    yield _post("/sessions/end", {"session_id": "nothing"})
    for talk in view.talks[:3]:
        yield _post("/sessions/end", {"session_id": talk})


# --- entities


@walks("GET", HERE + "/entities")
def entities(view: View) -> Iterator[Ask]:
    yield _get("/entities", limit=1000)
    yield _get("/entities", prefix="kx", limit=1000)


@walks("POST", HERE + "/entities/info")
def entity_info(view: View) -> Iterator[Ask]:
    own = [each.word for each in view.world.seen(view.viewer)[:3]]
    for name in [*own, *view.words, *TASKS, *PROJECTS]:
        yield _post("/entities/info", {"name": name, "limit": 100})


@walks("POST", HERE + "/entities/merge")
def merge(view: View) -> Iterator[Ask]:
    own = [each.word for each in view.world.seen(view.viewer)[:2]]
    for into, other in [own, *([own[0], word] for word in view.words[:4])]:
        yield _post("/entities/merge", {"into": into, "other": other, **WHY})
        yield _post("/entities/merge", {"into": other, "other": into, **WHY})


@walks("POST", HERE + "/entities/remove-alias")
def remove_alias(view: View) -> Iterator[Ask]:
    own = [each.word for each in view.world.seen(view.viewer)[:2]]
    yield _post("/entities/remove-alias", {"entity": own[0], "alias": own[1], **WHY})
    for word in view.words[:3]:
        yield _post("/entities/remove-alias", {"entity": word, "alias": word, **WHY})
        yield _post("/entities/remove-alias", {"entity": own[0], "alias": word, **WHY})


@walks("POST", HERE + "/entities/protect")
def protect(view: View) -> Iterator[Ask]:
    own = [each.word for each in view.world.seen(view.viewer)[:1]]
    for name in [*own, *view.words[:3]]:
        yield _post("/entities/protect", {"name": name, **WHY})


# --- contexts


@walks("POST", HERE + "/context")
def context(view: View) -> Iterator[Ask]:
    wanted = {"query": QUERY, "budget_tokens": 50_000}
    yield _post("/context", {"task": None, **wanted})
    for task in (*TASKS, "Kxother"):
        yield _post("/context", {"task": task, **wanted})
        for project in PROJECTS:
            both = {"task_id": task, "project_id": project}
            yield _post("/context", {"task": both, **wanted})
            said = {"task_id": task, "metadata": {"project_id": project}}
            yield _post("/context", {"task": said, **wanted})


@walks("POST", HERE + "/context/block")
def block(view: View) -> Iterator[Ask]:
    for more in ({}, {"kinds": []}, {"agent_id": "Kxagena"}, {"agent_id": "Kxagenb"}):
        yield _post("/context/block", {"prompt": QUERY, "budget_tokens": 20_000, **more})


@walks("POST", HERE + "/ask")
def ask(view: View) -> Iterator[Ask]:
    for more in ({}, {"kinds": ["fact"]}, {"agent_id": "Kxagena"}, {"agent_id": "Kxagenb"}):
        yield _post("/ask", {"question": QUERY, "budget_tokens": 20_000, **more})


@walks("GET", HERE + "/tiers/{tier}")
def tier(view: View) -> Iterator[Ask]:
    yield _get("/tiers/global", limit=1000)
    for name, scope_ids in (("task", TASKS), ("session", TASKS), ("project", PROJECTS)):
        for one in scope_ids:
            yield _get(f"/tiers/{name}", scope_id=one, limit=1000)


@walks("POST", HERE + "/forget")
def forget(view: View) -> Iterator[Ask]:
    for ids in (view.own[10:11], view.hidden):
        yield _post("/forget", {"memory_ids": ids, **WHY})


# --- files, jobs, copies


@walks("PUT", HERE + "/ingest/files/{name}")
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


@walks("GET", HERE + "/ingest/files")
def files(view: View) -> Iterator[Ask]:
    yield _get("/ingest/files", limit=1000)
    yield _get("/ingest/files", limit=1)
    for one in view.files:
        yield _get("/ingest/files", cursor=one)


@walks("GET", HERE + "/ingest/files/{sha256}")
def file(view: View) -> Iterator[Ask]:
    for one in view.files:
        yield _get(f"/ingest/files/{one}")


@walks("GET", HERE + "/jobs")
def jobs(view: View) -> Iterator[Ask]:
    yield _get("/jobs", limit=1000)


@walks("GET", HERE + "/jobs/plans")
def plans(view: View) -> Iterator[Ask]:
    yield _get("/jobs/plans")


@walks("POST", HERE + "/jobs/{job}/run")
def run(view: View) -> Iterator[Ask]:
    for job in JobName:
        yield _post(f"/jobs/{job}/run", {})


@walks("POST", HERE + "/verify")
def verify(view: View) -> Iterator[Ask]:
    yield _post("/verify", {})


@walks("GET", HERE + "/erasures")
def erasures(view: View) -> Iterator[Ask]:
    yield _get("/erasures", limit=200)


@walks("POST", HERE + "/erase")
def erase(view: View) -> Iterator[Ask]:
    # Who may erase sees everything: nothing is erased here that the other walks look for.
    for memory_id in (*view.hidden[:2], "fact_none"):
        yield _post("/erase", {"memory_id": memory_id, **WHY, "dry_run": True})
    yield _post("/erase", {"entity": view.words[0], **WHY, "dry_run": True})
    yield _post("/erase", {"session_id": "none", **WHY, "dry_run": False})


@walks("GET", HERE + "/export")
def export(view: View) -> Iterator[Ask]:
    yield _get("/export")
    yield _get("/export", with_vectors=True)


@walks("GET", HERE + "/backup")
def backup(view: View) -> Iterator[Ask]:
    yield _get("/backup")


# --- sources


def _named_sources(view: View) -> Iterator[dict[str, str]]:
    for talk in view.talks[:4]:
        yield {"kind": "conversation", "name": talk}
    for word in view.words[:4]:
        yield {"kind": "conversation", "name": f"talk-{word}"}
    yield {"kind": "run", "name": "run-1"}
    yield {"kind": "path", "name": "/"}


@walks("GET", HERE + "/sources")
def list_sources(view: View) -> Iterator[Ask]:
    yield _get("/sources", limit=500)
    for kind in ("path", "conversation", "run", "content"):
        yield _get("/sources", kind=kind, limit=3)
    for talk in view.talks[:2]:
        yield _get("/sources", cursor=f"conversation:{talk}")


@walks("POST", HERE + "/sources/info")
def source_info(view: View) -> Iterator[Ask]:
    for each in _named_sources(view):
        yield _post("/sources/info", each)


@walks("POST", HERE + "/sources/retract")
def retract_source(view: View) -> Iterator[Ask]:
    for talk in [*view.talks[:4], *(f"talk-{word}" for word in view.words[:4])]:
        yield _post("/sources/retract", {"conversation_id": talk, **WHY})
    yield _post("/sources/retract", {"path": "/", **WHY})
    for talk in view.talks[-2:]:
        yield _post("/sources/retract", {"conversation_id": talk, "dry_run": False, **WHY})
