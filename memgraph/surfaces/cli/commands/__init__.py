"""The table of commands: their order, groups and lines in ``memgraph --help``.

A command that is neither in ``MODULES`` nor a plugin is derived from the operation of its name.
"""

from __future__ import annotations

from typing import Final

GROUPS: Final = {
    "Everyday": {
        "init": "Create an orchestrator.",
        "ingest": "Turn dropped files into memories.",
        "remember": "Store one memory.",
        "say": "Store turns of a conversation.",
        "recall": "Recall memories that match a question, with their sources.",
        "context": "Print the memories to put before a message.",
        "ask": "Answer a question from memory, with the cited lines.",
        "bulletin": "Print what to know before the next message.",
        "list": "List memories, newest first.",
        "get": "Show a memory with all its fields.",
        "retract": "Retract a memory; it stays in the history.",
        "contradictions": "List contradictions and probable changes, with both sides.",
    },
    "Changes": {
        "correct": "Replace a memory's text by a new memory.",
        "relate": "Join two memories by an edge.",
        "confirm": "Protect a memory: full confidence, no decay.",
        "restore-memory": "Restore a retracted memory.",
        "retract-source": "Retract all that came from a source.",
        "case": "Show both sides of a contradiction, and the evidence for each.",
        "resolve": "Decide a contradiction.",
        "accept": "Put a mark of a change in force.",
        "dismiss": "Dismiss a contradiction or a mark: both sides are valid.",
        "reopen": "Undo a resolution, or a dismissal of a contradiction or a mark.",
        "promote": "Promote a memory to its project, or to global.",
        "erase": "Erase texts permanently, with a report.",
    },
    "Conversations and entities": {
        "sessions": "List conversations and their unprocessed turns.",
        "entities": "List entities, most mentioned first.",
        "entity": "Show an entity: its names, memories and neighbours.",
        "reflection": "Print the latest weekly reflection.",
    },
    "Evidence": {
        "trace": "Show a memory's sources and its later changes.",
        "diff": "Show what changed between two times.",
        "impact": "Show where a memory was used and what depends on it.",
        "grounds": "Show the evidence behind a memory or a run.",
        "subgraph": "Show the graph around some memories.",
        "sources": "List sources.",
        "receipts": "List which memories were returned, to whom.",
        "receipt": "Show which memories were returned, and why.",
    },
    "Audit and jobs": {
        "verify": "Audit a database and its journal.",
        "repair": "Show the head of a journal; accept a broken one.",
        "stats": "Count what is stored.",
        "jobs": "Show due times and past runs of jobs.",
        "run": "Run a job now.",
        "worker": "Run every job when it is due, until stopped.",
    },
    "Service and agents": {
        "serve": "Serve programs and agents over HTTP.",
        "mcp": "Serve an agent over standard input and output.",
        "key": "Create, list, revoke, rotate and forget the keys of a server.",
    },
    "Maintenance": {
        "health": "List orchestrators with their health and stores.",
        "config": "Show or check the settings.",
        "backup": "Copy a database into one file.",
        "restore": "Restore a database from a backup.",
        "migrate-store": "Move an orchestrator into a file or to a server.",
        "export": "Export all data as JSON Lines.",
        "embed": "Embed pending memories, or all again.",
        "rebuild": "Rebuild indexes.",
    },
}
"""The lines of the commands in each section of ``memgraph --help``."""
COMMANDS: Final = {name: text for commands in GROUPS.values() for name, text in commands.items()}
PLUGIN: Final = "ingest"
"""The command of the table that is an entry point of another package."""
MODULES: Final = {
    **dict.fromkeys(("init", "health", "restore", "migrate-store", "config"), "setup"),
    **dict.fromkeys(("serve", "mcp", "worker"), "service"),
    "key": "keys",
}
"""The module of this package that has a function or a group of the command's name."""
