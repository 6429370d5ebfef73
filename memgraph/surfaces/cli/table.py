"""The table of commands: their modules, and their lines in ``memgraph --help``."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    """A command of the table; ``module`` None: it is an entry point of another package."""

    module: str | None
    help: str


_HERE = "memgraph.surfaces.cli.commands"

_GROUPS: dict[str, dict[str, Listed]] = {
    "Everyday": {
        "init": Listed(f"{_HERE}.setup", "Make an orchestrator."),
        "ingest": Listed(None, "Turn dropped files into memories."),
        "remember": Listed(f"{_HERE}.changes", "Store one memory."),
        "recall": Listed(f"{_HERE}.recall", "Recall what fits a question, with its sources."),
        "context": Listed(f"{_HERE}.context", "Print what a task needs to know, for a prompt."),
        "bulletin": Listed(f"{_HERE}.recall", "Print what to know before the next message."),
        "say": Listed(f"{_HERE}.conversations", "Store what was said in a conversation."),
        "sessions": Listed(f"{_HERE}.conversations", "List conversations and what of them waits."),
        "list": Listed(f"{_HERE}.memories", "List memories, newest first."),
        "show": Listed(f"{_HERE}.memories", "Show memories with all their fields."),
        "entity": Listed(f"{_HERE}.entities", "Show one entity."),
        "entities": Listed(f"{_HERE}.entities", "List entities, merge and split them."),
    },
    "Changes": {
        "relate": Listed(f"{_HERE}.changes", "Join two memories by an edge."),
        "correct": Listed(f"{_HERE}.changes", "Replace a memory's text by a new memory."),
        "confirm": Listed(f"{_HERE}.changes", "Protect a memory: full confidence, no decay."),
        "retract": Listed(f"{_HERE}.changes", "Retract a memory, or restore it."),
        "promote": Listed(f"{_HERE}.tiers", "Promote a memory to its project, or to global."),
        "tier": Listed(f"{_HERE}.tiers", "List the items of a task, a project or the global tier."),
        "expiring": Listed(f"{_HERE}.expiry", "Show what will expire unless it is used."),
        "reflection": Listed(f"{_HERE}.expiry", "Print the latest weekly reflection."),
    },
    "Contradictions": {
        "contradictions": Listed(f"{_HERE}.graph", "List contradictions with both sides."),
        "resolve": Listed(f"{_HERE}.changes", "Decide a contradiction, or reopen it."),
        "case": Listed(f"{_HERE}.cases", "Show, dismiss and export a contradiction as a case."),
        "stale": Listed(f"{_HERE}.cases", "List memories with retracted or superseded evidence."),
    },
    "Sources and evidence": {
        "source": Listed(f"{_HERE}.sources", "List sources, and assign trust to them."),
        "trace": Listed(f"{_HERE}.graph", "Show a memory's sources and what became of it."),
        "history": Listed(f"{_HERE}.history", "Show every status and value that a memory had."),
        "diff": Listed(f"{_HERE}.history", "Show what changed between two times."),
        "impact": Listed(f"{_HERE}.influence", "Show what a memory reached."),
        "grounds": Listed(f"{_HERE}.influence", "Show the evidence behind a memory or a run."),
        "receipt": Listed(f"{_HERE}.receipts", "Show what was handed out, and why."),
        "subgraph": Listed(f"{_HERE}.graph", "Show the graph around some memories."),
        "graph": Listed(f"{_HERE}.pictures", "Draw the graph into an SVG, PNG or HTML file."),
        "timeline": Listed(f"{_HERE}.pictures", "Draw what changed over time into a file."),
    },
    "Audit": {
        "verify": Listed(f"{_HERE}.maintenance", "Audit a database and its journal."),
        "audit": Listed(f"{_HERE}.audit", "Measure duplicates, contradictions, what is stale."),
        "stats": Listed(f"{_HERE}.memories", "Count what is stored."),
        "anchor": Listed(f"{_HERE}.maintenance", "Print the head of a journal."),
        "repair": Listed(f"{_HERE}.maintenance", "Accept what is left of a broken journal."),
        "erase": Listed(f"{_HERE}.erasure", "Erase texts permanently, with a signed report."),
        "erasure": Listed(f"{_HERE}.erasure", "Check reports of erasures."),
    },
    "Jobs": {
        "jobs": Listed(f"{_HERE}.jobs", "Show when jobs are due and past runs."),
        "run": Listed(f"{_HERE}.jobs", "Run a job now."),
        "worker": Listed(f"{_HERE}.jobs", "Run every job when it is due, until stopped."),
    },
    "Service and agents": {
        "serve": Listed(f"{_HERE}.serve", "Serve programs and agents over HTTP."),
        "mcp": Listed(f"{_HERE}.mcp", "Serve an agent over standard input and output."),
        "key": Listed(
            f"{_HERE}.keys", "Create, list, revoke, rotate and forget the keys of a server."
        ),
        "webhook": Listed(f"{_HERE}.webhooks", "List and resend what a webhook did not take."),
        "tools": Listed(f"{_HERE}.agents", "Print the tools of a language model."),
        "call": Listed(f"{_HERE}.agents", "Run one tool call as a language model would."),
    },
    "Maintenance": {
        "health": Listed(f"{_HERE}.setup", "Report whether memories work."),
        "config": Listed(f"{_HERE}.setup", "Show the settings in force and their origins."),
        "db": Listed(f"{_HERE}.maintenance", "Show and upgrade database schemas."),
        "backup": Listed(f"{_HERE}.maintenance", "Copy a database into one file."),
        "restore": Listed(f"{_HERE}.maintenance", "Restore a database from a backup."),
        "export": Listed(f"{_HERE}.exchange", "Write everything as JSON Lines."),
        "import": Listed(f"{_HERE}.exchange", "Import an export."),
        "embeddings": Listed(f"{_HERE}.maintenance", "Show, make and rebuild embeddings."),
        "rebuild": Listed(f"{_HERE}.maintenance", "Rebuild indexes."),
    },
}
GROUPS = {group: list(commands) for group, commands in _GROUPS.items()}
"""The names of the commands of each section of ``memgraph --help``."""
COMMANDS = {name: each for commands in _GROUPS.values() for name, each in commands.items()}
