"""The table of commands: their modules, and their lines in ``memgraph --help``."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """A command of the table; ``module`` None: it is an entry point of another package."""

    module: str | None
    help: str


_HERE = "memgraph.surfaces.cli.commands"

_GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Everyday": {
        "init": CommandEntry(f"{_HERE}.setup", "Make an orchestrator."),
        "ingest": CommandEntry(None, "Turn dropped files into memories."),
        "remember": CommandEntry(f"{_HERE}.changes", "Store one memory."),
        "recall": CommandEntry(f"{_HERE}.recall", "Recall what fits a question, with its sources."),
        "context": CommandEntry(
            f"{_HERE}.context", "Print what a task needs to know, for a prompt."
        ),
        "bulletin": CommandEntry(f"{_HERE}.recall", "Print what to know before the next message."),
        "say": CommandEntry(f"{_HERE}.conversations", "Store what was said in a conversation."),
        "sessions": CommandEntry(
            f"{_HERE}.conversations", "List conversations and what of them waits."
        ),
        "list": CommandEntry(f"{_HERE}.memories", "List memories, newest first."),
        "show": CommandEntry(f"{_HERE}.memories", "Show memories with all their fields."),
        "entity": CommandEntry(f"{_HERE}.entities", "Show one entity."),
        "entities": CommandEntry(f"{_HERE}.entities", "List entities, merge and split them."),
    },
    "Changes": {
        "relate": CommandEntry(f"{_HERE}.changes", "Join two memories by an edge."),
        "correct": CommandEntry(f"{_HERE}.changes", "Replace a memory's text by a new memory."),
        "confirm": CommandEntry(f"{_HERE}.changes", "Protect a memory: full confidence, no decay."),
        "retract": CommandEntry(f"{_HERE}.changes", "Retract a memory, or restore it."),
        "promote": CommandEntry(f"{_HERE}.tiers", "Promote a memory to its project, or to global."),
        "tier": CommandEntry(
            f"{_HERE}.tiers", "List the items of a task, a project or the global tier."
        ),
        "expiring": CommandEntry(f"{_HERE}.expiry", "Show what will expire unless it is used."),
        "reflection": CommandEntry(f"{_HERE}.expiry", "Print the latest weekly reflection."),
    },
    "Contradictions": {
        "contradictions": CommandEntry(f"{_HERE}.graph", "List contradictions with both sides."),
        "resolve": CommandEntry(f"{_HERE}.changes", "Decide a contradiction, or reopen it."),
        "case": CommandEntry(
            f"{_HERE}.cases", "Show, dismiss and export a contradiction as a case."
        ),
        "stale": CommandEntry(
            f"{_HERE}.cases", "List memories with retracted or superseded evidence."
        ),
    },
    "Sources and evidence": {
        "source": CommandEntry(f"{_HERE}.sources", "List sources, and assign trust to them."),
        "trace": CommandEntry(f"{_HERE}.graph", "Show a memory's sources and what became of it."),
        "history": CommandEntry(
            f"{_HERE}.history", "Show every status and value that a memory had."
        ),
        "diff": CommandEntry(f"{_HERE}.history", "Show what changed between two times."),
        "impact": CommandEntry(f"{_HERE}.influence", "Show what a memory reached."),
        "grounds": CommandEntry(
            f"{_HERE}.influence", "Show the evidence behind a memory or a run."
        ),
        "receipt": CommandEntry(f"{_HERE}.receipts", "Show what was handed out, and why."),
        "subgraph": CommandEntry(f"{_HERE}.graph", "Show the graph around some memories."),
        "graph": CommandEntry(f"{_HERE}.pictures", "Draw the graph into an SVG, PNG or HTML file."),
        "timeline": CommandEntry(f"{_HERE}.pictures", "Draw what changed over time into a file."),
    },
    "Audit": {
        "verify": CommandEntry(f"{_HERE}.maintenance", "Audit a database and its journal."),
        "audit": CommandEntry(
            f"{_HERE}.audit", "Measure duplicates, contradictions, what is stale."
        ),
        "stats": CommandEntry(f"{_HERE}.memories", "Count what is stored."),
        "anchor": CommandEntry(f"{_HERE}.maintenance", "Print the head of a journal."),
        "repair": CommandEntry(f"{_HERE}.maintenance", "Accept what is left of a broken journal."),
        "erase": CommandEntry(f"{_HERE}.erasure", "Erase texts permanently, with a signed report."),
        "erasure": CommandEntry(f"{_HERE}.erasure", "Check reports of erasures."),
    },
    "Jobs": {
        "jobs": CommandEntry(f"{_HERE}.jobs", "Show when jobs are due and past runs."),
        "run": CommandEntry(f"{_HERE}.jobs", "Run a job now."),
        "worker": CommandEntry(f"{_HERE}.jobs", "Run every job when it is due, until stopped."),
    },
    "Service and agents": {
        "serve": CommandEntry(f"{_HERE}.serve", "Serve programs and agents over HTTP."),
        "mcp": CommandEntry(f"{_HERE}.mcp", "Serve an agent over standard input and output."),
        "key": CommandEntry(
            f"{_HERE}.keys", "Create, list, revoke, rotate and forget the keys of a server."
        ),
        "webhook": CommandEntry(
            f"{_HERE}.webhooks", "Test the webhook; list and resend what it did not take."
        ),
        "tools": CommandEntry(f"{_HERE}.agents", "Print the tools of a language model."),
        "call": CommandEntry(f"{_HERE}.agents", "Run one tool call as a language model would."),
    },
    "Maintenance": {
        "health": CommandEntry(f"{_HERE}.setup", "Report whether memories work."),
        "config": CommandEntry(f"{_HERE}.setup", "Show the settings in force and their origins."),
        "db": CommandEntry(f"{_HERE}.maintenance", "Show and upgrade database schemas."),
        "backup": CommandEntry(f"{_HERE}.maintenance", "Copy a database into one file."),
        "restore": CommandEntry(f"{_HERE}.maintenance", "Restore a database from a backup."),
        "migrate-store": CommandEntry(f"{_HERE}.maintenance", "Move between a file and servers."),
        "export": CommandEntry(f"{_HERE}.exchange", "Write everything as JSON Lines."),
        "import": CommandEntry(f"{_HERE}.exchange", "Import an export."),
        "embeddings": CommandEntry(f"{_HERE}.maintenance", "Show, make and rebuild embeddings."),
        "rebuild": CommandEntry(f"{_HERE}.maintenance", "Rebuild indexes."),
    },
}
GROUPS = {group: list(commands) for group, commands in _GROUPS.items()}
"""The names of the commands of each section of ``memgraph --help``."""
COMMANDS = {name: each for commands in _GROUPS.values() for name, each in commands.items()}
