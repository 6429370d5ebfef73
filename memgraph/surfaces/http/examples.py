"""Examples of request bodies for the OpenAPI document and the reference; all of them are valid."""

from __future__ import annotations

from typing import Any, Final

from fastapi.openapi.models import Example

_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B1D"
_OTHER_ID: Final = "mem_01JZ8Q5N7W3V0C2X9R4T6Y8B2E"
_RUN: Final = {"workflow_run_id": "run-1", "step_id": "plan"}
_REASON: Final = {"reason": "it was said in jest"}

_BODIES: Final[dict[str, dict[str, Any]]] = {
    "on_message": {
        "content": "When do you close on Fridays?",
        "conversation_id": "chat-7",
        "turn_id": "chat-7-1",
        "deadline_ms": 30_000,
    },
    "on_step": {**_RUN, "prompt": "Plan the opening hours."},
    "on_step_output": {**_RUN, "output": "Decision: we close at 18:00 on Fridays."},
    "on_transcript": {
        "conversation_id": "chat-7",
        "turns": [{"content": "At 18:00.", "source_role": "assistant", "turn_id": "chat-7-2"}],
    },
    "on_diagnostics": {"question": "Why do we close at 18:00?", "max_nodes": 20},
    "record_findings": {
        "findings": [{"content": "The bus leaves at 18:15.", "type": "Observation"}]
    },
    "end_task": {"task_id": "task-3", "project_id": "shop", "promote": [_ID]},
    "store_items": {
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
    "retrieve_items": {"query": "Can you help me?", "tier": "SemanticMemory", "limit": 20},
    "list_items": {"tier": "SemanticMemory", "limit": 20},
    "forget_items": {"cutoffDate": "2026-01-01T00:00:00Z"},
    "remember": {
        "content": "The office closes at 18:00 on Fridays.",
        "tags": ["office"],
        "importance": 60,
    },
    "remember_many": {
        "items": [
            {"key": "hours", "content": "The office closes at 18:00 on Fridays."},
            {"content": "Deliveries come before 18:00.", "derived_from": ["#hours"]},
        ]
    },
    "correct": {
        "content": "The office closes at 17:00 on Fridays.",
        "reason": "new hours since May",
    },
    "retract": _REASON,
    "restore": _REASON,
    "forget": {"memory_ids": [_ID], "reason": "asked to by the customer"},
    "relate": {"from_id": _ID, "to_id": _OTHER_ID, "edge_type": "Contradicts"},
    "save_episode": {
        "content": "When do you close?",
        "session_id": "chat-7",
        "source_role": "user",
    },
    "save_episodes": {
        "items": [
            {"content": "When do you close?", "session_id": "chat-7", "source_role": "user"},
            {"content": "At 18:00.", "session_id": "chat-7", "source_role": "assistant"},
        ]
    },
    "end_session": {"session_id": "chat-7"},
    "recall": {"query": "When does the office close?", "top_n": 5},
    "subgraph": {"ids": [_ID], "hops": 2},
    "get_context": {"prompt": "Can I come by on Friday at six?", "budget_tokens": 800},
    "ask": {"question": "When does the office close on Fridays?"},
    "erase": {"session_id": "session-7", "reason": "asked for by the person"},
    "source_info": {"kind": "conversation", "name": "chat-7"},
    "retract_source": {"path": "mail/offer.md", "reason": "it was forged"},
    "get_entity_info": {"name": "Anna Berg", "limit": 5},
    "merge_entities": {"into": "Anna Berg", "other": "A. Berg", "reason": "the same address"},
    "remove_alias": {"entity": "Anna Berg", "alias": "A. Berg", "reason": "Axel signs so, too"},
    "protect_entity": {"name": "Anna Berg", "reason": "our oldest customer"},
    "dismiss_contradiction": _REASON,
    "accept_change": _REASON,
    "reopen_contradiction": _REASON,
    "resolve_contradiction": {"winner": _ID, "reason": "confirmed by phone"},
    "create_orchestrator": {"name": "helpdesk"},
    "promote": {"to": "project", "scope_id": "relaunch", "reason": "decided"},
    "build_context": {"query": "opening hours", "budget_tokens": 800},
    "run_job": {"session_id": "chat-7"},
}
"""The bodies by the ids of operations."""


def of(operation_id: str) -> dict[str, Example] | None:
    """Return the example for an operation's body, or None."""
    body = _BODIES.get(operation_id)
    return None if body is None else {"example": Example(value=body)}
