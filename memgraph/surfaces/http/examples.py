"""Examples of requests, for the OpenAPI document and the reference; every one is valid."""

from __future__ import annotations

from typing import Any, Final

from fastapi.openapi.models import Example

MEMORY_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B1D"
OTHER_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B2E"


def _one(summary: str, value: dict[str, Any]) -> dict[str, Example]:
    return {"example": Example(summary=summary, value=value)}


MEMORY: Final = _one(
    "A fact with tags",
    {"content": "The office closes at 18:00 on Fridays.", "tags": ["office"], "importance": 60},
)
BATCH: Final = _one(
    "Two facts, the second drawn from the first",
    {
        "items": [
            {"key": "hours", "content": "The office closes at 18:00 on Fridays."},
            {"content": "Deliveries come before 18:00.", "derived_from": ["#hours"]},
        ]
    },
)
CORRECTION: Final = _one(
    "A new text",
    {"content": "The office closes at 17:00 on Fridays.", "reason": "new hours since May"},
)
REASON: Final = _one("Why", {"reason": "it was said in jest"})
PROMOTION: Final = _one(
    "From a task to its project", {"to": "project", "scope_id": "relaunch", "reason": "decided"}
)
EDGE: Final = _one(
    "A contradiction",
    {"from_id": MEMORY_ID, "to_id": OTHER_ID, "edge_type": "Contradicts"},
)
RECALL: Final = _one("A question", {"query": "When does the office close?", "top_n": 5})
SUBGRAPH: Final = _one("Two steps around a memory", {"ids": [MEMORY_ID], "hops": 2})
RELEVANT: Final = _one("A message", {"prompt": "Can I come by on Friday at six?"})
RESOLUTION: Final = _one("One side wins", {"winner": MEMORY_ID, "reason": "confirmed by phone"})
NEW_ORCHESTRATOR: Final = _one("A name", {"name": "helpdesk"})
EPISODE: Final = _one(
    "What a person said",
    {"content": "When do you close?", "session_id": "chat-7", "source_role": "user"},
)
EPISODES: Final = _one(
    "A question and its answer",
    {
        "items": [
            {"content": "When do you close?", "session_id": "chat-7", "source_role": "user"},
            {"content": "At 18:00.", "session_id": "chat-7", "source_role": "assistant"},
        ]
    },
)
ENDING: Final = _one("A conversation that is over", {"session_id": "chat-7"})
ENTITY: Final = _one("By a name", {"name": "Anna Berg", "limit": 5})
MERGE: Final = _one(
    "Two names of one person",
    {"into": "Anna Berg", "other": "A. Berg", "reason": "the same address"},
)
PROTECT: Final = _one(
    "What is known of a person stays", {"name": "Anna Berg", "reason": "our oldest customer"}
)
DECIDE: Final = _one(
    "Two names of one person, as a model proposed",
    {"proposal_id": "prop_01K0", "accept": True, "reason": "she signs so"},
)
SPLIT: Final = _one(
    "A name that is another person's",
    {"entity": "Anna Berg", "names": ["A. Berg"], "reason": "Axel signs so, too"},
)
ERASURE: Final = _one(
    "What would go of what a session said",
    {
        "target": {"kind": "session", "value": "session-7"},
        "reason": "asked for by the person",
    },
)
EXPLAIN: Final = _one(
    "An agent's answer", {"answer": "The office closes at 18:00 on Fridays.", "limit": 5}
)
AUDIT: Final = _one("Limits for two rates", {"fail_on": ["stale=0.05", "echo"], "examples": 3})
CONTEXT: Final = _one(
    "What everybody may know of a question",
    {"request": {"query": "opening hours", "budget_tokens": 800}},
)
BLOCK: Final = _one("A message", {"prompt": "Can I come by on Friday at six?", "limit": 8})
REPLAY: Final = _one("What was asked", {"query": "When do we close?"})
FORGETTING: Final = _one(
    "One memory", {"memory_ids": [MEMORY_ID], "reason": "asked to by the customer"}
)
SOURCE: Final = _one("A conversation", {"kind": "conversation", "name": "chat-7"})
SOURCE_TRUST: Final = _one(
    "A folder that anybody fills",
    {"kind": "path", "name": "mail", "tier": "low", "max_memories": 500, "reason": "open to all"},
)
SOURCE_DISTRUST: Final = _one(
    "As if nothing was said", {"kind": "path", "name": "mail", "reason": "it is closed now"}
)
SOURCE_TAKEN: Final = _one(
    "What would go with a file", {"path": "mail/offer.md", "reason": "it was forged"}
)
SOURCE_BACK: Final = _one(
    "What would come back with a file", {"path": "mail/offer.md", "reason": "it was genuine"}
)
RUN: Final = _one("A rehearsal of a consolidation", {"dry_run": True})
FILE: Final = {
    "example": {"summary": "A note in Markdown", "value": "# Hours\n\nWe close at 18:00.\n"}
}


_BODIES: Final = {
    "remember": MEMORY,
    "remember_many": BATCH,
    "correct": CORRECTION,
    "retract": REASON,
    "restore": REASON,
    "forget": FORGETTING,
    "relate": EDGE,
    "save_episode": EPISODE,
    "save_episodes": EPISODES,
    "end_session": ENDING,
    "recall": RECALL,
    "relevant": RELEVANT,
    "subgraph": SUBGRAPH,
    "get_context": BLOCK,
    "erase": ERASURE,
    "source_info": SOURCE,
    "trust_source": SOURCE_TRUST,
    "distrust_source": SOURCE_DISTRUST,
    "retract_source": SOURCE_TAKEN,
    "restore_source": SOURCE_BACK,
    "get_entity_info": ENTITY,
    "merge_entities": MERGE,
    "split_entity": SPLIT,
    "protect_entity": PROTECT,
    "decide_entity_proposal": DECIDE,
    "dismiss_contradiction": REASON,
    "reopen_contradiction": REASON,
    "resolve_contradiction": RESOLUTION,
    "replay": REPLAY,
    "audit": AUDIT,
    "explain_answer": EXPLAIN,
}


def of(operation_id: str) -> dict[str, Example] | None:
    """Return the example of an operation's body; None: there is none."""
    return _BODIES.get(operation_id)
