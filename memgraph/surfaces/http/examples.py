"""Examples of request bodies for the OpenAPI document and the reference; all of them are valid."""

from __future__ import annotations

from typing import Any, Final

from fastapi.openapi.models import Example

MEMORY_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B1D"
OTHER_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B2E"


def _example(summary: str, value: dict[str, Any]) -> dict[str, Example]:
    return {"example": Example(summary=summary, value=value)}


MEMORY: Final = _example(
    "A fact with tags",
    {"content": "The office closes at 18:00 on Fridays.", "tags": ["office"], "importance": 60},
)
BATCH: Final = _example(
    "Two facts, the second derived from the first",
    {
        "items": [
            {"key": "hours", "content": "The office closes at 18:00 on Fridays."},
            {"content": "Deliveries come before 18:00.", "derived_from": ["#hours"]},
        ]
    },
)
CORRECTION: Final = _example(
    "A new text",
    {"content": "The office closes at 17:00 on Fridays.", "reason": "new hours since May"},
)
REASON: Final = _example("A reason", {"reason": "it was said in jest"})
PROMOTION: Final = _example(
    "From a task to its project", {"to": "project", "scope_id": "relaunch", "reason": "decided"}
)
EDGE: Final = _example(
    "A contradiction",
    {"from_id": MEMORY_ID, "to_id": OTHER_ID, "edge_type": "Contradicts"},
)
RECALL: Final = _example("A question", {"query": "When does the office close?", "top_n": 5})
SUBGRAPH: Final = _example("Two steps around a memory", {"ids": [MEMORY_ID], "hops": 2})
RESOLUTION: Final = _example("One side wins", {"winner": MEMORY_ID, "reason": "confirmed by phone"})
NEW_ORCHESTRATOR: Final = _example("A name", {"name": "helpdesk"})
EPISODE: Final = _example(
    "A turn of the user",
    {"content": "When do you close?", "session_id": "chat-7", "source_role": "user"},
)
EPISODES: Final = _example(
    "A question and its answer",
    {
        "items": [
            {"content": "When do you close?", "session_id": "chat-7", "source_role": "user"},
            {"content": "At 18:00.", "session_id": "chat-7", "source_role": "assistant"},
        ]
    },
)
ENDING: Final = _example("A conversation that is over", {"session_id": "chat-7"})
ENTITY: Final = _example("By a name", {"name": "Anna Berg", "limit": 5})
MERGE: Final = _example(
    "Two names of one person",
    {"into": "Anna Berg", "other": "A. Berg", "reason": "the same address"},
)
PROTECT: Final = _example(
    "Facts about a person do not decay", {"name": "Anna Berg", "reason": "our oldest customer"}
)
ALIAS: Final = _example(
    "A name that belongs to another person",
    {"entity": "Anna Berg", "alias": "A. Berg", "reason": "Axel signs so, too"},
)
ERASURE: Final = _example(
    "A preview of the erasure of a session",
    {
        "session_id": "session-7",
        "reason": "asked for by the person",
    },
)
AUDIT: Final = _example(
    "Limits for two rates", {"fail_on": ["stale=0.05", "orphan"], "examples": 3}
)
CONTEXT: Final = _example(
    "What any reader may know about a question",
    {"request": {"query": "opening hours", "budget_tokens": 800}},
)
BLOCK: Final = _example(
    "A message", {"prompt": "Can I come by on Friday at six?", "budget_tokens": 800}
)
QUESTION: Final = _example("A question", {"question": "When does the office close on Fridays?"})
FORGETTING: Final = _example(
    "One memory", {"memory_ids": [MEMORY_ID], "reason": "asked to by the customer"}
)
SOURCE: Final = _example("A conversation", {"kind": "conversation", "name": "chat-7"})
SOURCE_TAKEN: Final = _example(
    "A preview of retracting a file", {"path": "mail/offer.md", "reason": "it was forged"}
)
RUN: Final = _example("A dry run of a consolidation", {"dry_run": True})
FILE: Final = {
    "example": {"summary": "A note in Markdown", "value": "# Hours\n\nWe close at 18:00.\n"}
}
ITEMS: Final = _example(
    "A fact about the user",
    {
        "items": [
            {
                "tier": "SemanticMemory",
                "scope": "GlobalScope",
                "source": "UserSource",
                "content": "User prefers concise responses",
            }
        ],
        "callId": "call-7",
    },
)
RETRIEVAL: Final = _example(
    "A message", {"query": "Can you help me?", "tier": "SemanticMemory", "limit": 20}
)
ITEM_LIST: Final = _example("What is known", {"tier": "SemanticMemory", "limit": 20})
ITEMS_FORGOTTEN: Final = _example("What is old", {"cutoffDate": "2026-01-01T00:00:00Z"})
_RUN: Final = {"workflow_run_id": "run-1", "step_id": "plan"}
MESSAGE: Final = _example(
    "A message of the user",
    {
        "content": "When do you close on Fridays?",
        "conversation_id": "chat-7",
        "turn_id": "chat-7-1",
        "deadline_ms": 30_000,
    },
)
STEP: Final = _example("A step of a plan", {**_RUN, "prompt": "Plan the opening hours."})
OUTPUT: Final = _example(
    "A text with a decision", {**_RUN, "output": "Decision: we close at 18:00 on Fridays."}
)
TRANSCRIPT: Final = _example(
    "The answer of the agent",
    {
        "conversation_id": "chat-7",
        "turns": [{"content": "At 18:00.", "source_role": "assistant", "turn_id": "chat-7-2"}],
    },
)
INQUIRY: Final = _example("A question", {"question": "Why do we close at 18:00?", "max_nodes": 20})
FINDINGS: Final = _example(
    "A cause", {"findings": [{"content": "The bus leaves at 18:15.", "type": "Observation"}]}
)
TASK_END: Final = _example(
    "A task of a project", {"task_id": "task-3", "project_id": "shop", "promote": [MEMORY_ID]}
)


_BODIES: Final = {
    "on_message": MESSAGE,
    "on_step": STEP,
    "on_step_output": OUTPUT,
    "on_transcript": TRANSCRIPT,
    "on_diagnostics": INQUIRY,
    "record_findings": FINDINGS,
    "end_task": TASK_END,
    "store_items": ITEMS,
    "retrieve_items": RETRIEVAL,
    "list_items": ITEM_LIST,
    "forget_items": ITEMS_FORGOTTEN,
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
    "subgraph": SUBGRAPH,
    "get_context": BLOCK,
    "ask": QUESTION,
    "erase": ERASURE,
    "source_info": SOURCE,
    "retract_source": SOURCE_TAKEN,
    "get_entity_info": ENTITY,
    "merge_entities": MERGE,
    "remove_alias": ALIAS,
    "protect_entity": PROTECT,
    "dismiss_contradiction": REASON,
    "accept_change": REASON,
    "reopen_contradiction": REASON,
    "resolve_contradiction": RESOLUTION,
    "audit": AUDIT,
}


def of(operation_id: str) -> dict[str, Example] | None:
    """Return the example for an operation's body, or None."""
    return _BODIES.get(operation_id)
