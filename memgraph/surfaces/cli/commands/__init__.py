"""The table of commands: their order, groups and lines in ``memgraph --help``, and where they are.

Commands are imported when they are used.
"""

from __future__ import annotations

from typing import Final, NamedTuple

OPERATION: Final = ""
"""The module of a command that is derived from the operation of this name."""
PLUGIN: Final = None
"""The module of a command that is an entry point of another package."""


class CommandEntry(NamedTuple):
    """A command; ``module`` is a module of this package, ``OPERATION`` or ``PLUGIN``."""

    module: str | None
    help: str


_TABLE: Final[dict[str, dict[str, tuple[str | None, str]]]] = {
    "Everyday": {
        "init": ("setup", "Create an orchestrator."),
        "ingest": (PLUGIN, "Turn dropped files into memories."),
        "remember": (OPERATION, "Store one memory."),
        "say": (OPERATION, "Store turns of a conversation."),
        "recall": (OPERATION, "Recall memories that match a question, with their sources."),
        "context": (OPERATION, "Print the memories to put before a message."),
        "ask": (OPERATION, "Answer a question from memory, with the cited lines."),
        "bulletin": (OPERATION, "Print what to know before the next message."),
        "list": (OPERATION, "List memories, newest first."),
        "get": (OPERATION, "Show a memory with all its fields."),
        "retract": (OPERATION, "Retract a memory; it stays in the history."),
        "contradictions": (OPERATION, "List contradictions and probable changes, with both sides."),
    },
    "Changes": {
        "correct": (OPERATION, "Replace a memory's text by a new memory."),
        "relate": (OPERATION, "Join two memories by an edge."),
        "confirm": (OPERATION, "Protect a memory: full confidence, no decay."),
        "restore-memory": (OPERATION, "Restore a retracted memory."),
        "retract-source": (OPERATION, "Retract all that came from a source."),
        "case": (OPERATION, "Show both sides of a contradiction, and the evidence for each."),
        "resolve": (OPERATION, "Decide a contradiction."),
        "accept": (OPERATION, "Put a mark of a change in force."),
        "dismiss": (OPERATION, "Dismiss a contradiction or a mark: both sides are valid."),
        "reopen": (OPERATION, "Undo a resolution, or a dismissal of a contradiction or a mark."),
        "promote": (OPERATION, "Promote a memory to its project, or to global."),
        "erase": (OPERATION, "Erase texts permanently, with a report."),
    },
    "Conversations and entities": {
        "sessions": (OPERATION, "List conversations and their unprocessed turns."),
        "entities": (OPERATION, "List entities, most mentioned first."),
        "entity": (OPERATION, "Show an entity: its names, memories and neighbours."),
        "reflection": (OPERATION, "Print the latest weekly reflection."),
    },
    "Evidence": {
        "trace": (OPERATION, "Show a memory's sources and its later changes."),
        "diff": (OPERATION, "Show what changed between two times."),
        "impact": (OPERATION, "Show where a memory was used and what depends on it."),
        "grounds": (OPERATION, "Show the evidence behind a memory or a run."),
        "subgraph": (OPERATION, "Show the graph around some memories."),
        "sources": (OPERATION, "List sources."),
        "receipts": (OPERATION, "List which memories were returned, to whom."),
        "receipt": (OPERATION, "Show which memories were returned, and why."),
    },
    "Audit and jobs": {
        "verify": (OPERATION, "Audit a database and its journal."),
        "repair": (OPERATION, "Show the head of a journal; accept a broken one."),
        "audit": (OPERATION, "Measure duplicates, contradictions and stale memories."),
        "stats": (OPERATION, "Count what is stored."),
        "jobs": (OPERATION, "Show due times and past runs of jobs."),
        "run": (OPERATION, "Run a job now."),
        "worker": ("worker", "Run every job when it is due, until stopped."),
    },
    "Service and agents": {
        "serve": ("service", "Serve programs and agents over HTTP."),
        "mcp": ("service", "Serve an agent over standard input and output."),
        "key": ("keys", "Create, list, revoke, rotate and forget the keys of a server."),
    },
    "Maintenance": {
        "health": ("setup", "List orchestrators with their health and stores."),
        "config": ("setup", "Show or check the settings."),
        "upgrade": ("exchange", "Upgrade database schemas."),
        "backup": ("exchange", "Copy a database into one file."),
        "restore": ("exchange", "Restore a database from a backup."),
        "migrate-store": ("exchange", "Move an orchestrator into a file or to a server."),
        "export": ("exchange", "Export all data as JSON Lines."),
        "embed": (OPERATION, "Embed pending memories, or all again."),
        "rebuild": (OPERATION, "Rebuild indexes."),
    },
}
GROUPS: Final = {
    group: {name: CommandEntry(*entry) for name, entry in commands.items()}
    for group, commands in _TABLE.items()
}
"""The commands of each section of ``memgraph --help``."""
COMMANDS: Final = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}
