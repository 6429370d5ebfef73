"""Which commands there are, where each lives, and its line in ``memgraph --help``."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    """``module`` None: it lives outside of memgraph, under the entry points of commands."""

    module: str | None
    help: str


_HERE = "memgraph.surfaces.cli.commands"

COMMANDS: dict[str, Listed] = {
    "init": Listed(f"{_HERE}.setup", "Make an orchestrator."),
    "ingest": Listed(None, "Turn dropped files into memories."),
    "remember": Listed(f"{_HERE}.writing", "Store one memory."),
    "say": Listed(f"{_HERE}.conversing", "Store what was said in a conversation."),
    "sessions": Listed(f"{_HERE}.conversing", "List conversations and what of them waits."),
    "relate": Listed(f"{_HERE}.writing", "Join two memories by an edge."),
    "recall": Listed(f"{_HERE}.recall", "Recall what fits a question, with its sources."),
    "context": Listed(f"{_HERE}.assembling", "Print what a task needs to know, for a prompt."),
    "subgraph": Listed(f"{_HERE}.graph", "Show the graph around some memories."),
    "graph": Listed(f"{_HERE}.pictures", "Draw the graph into an SVG, PNG or HTML file."),
    "timeline": Listed(f"{_HERE}.pictures", "Draw what changed over time into a file."),
    "bulletin": Listed(f"{_HERE}.recall", "Print what to know before the next message."),
    "contradictions": Listed(f"{_HERE}.graph", "List contradictions with both sides."),
    "resolve": Listed(f"{_HERE}.writing", "Decide a contradiction, or reopen it."),
    "case": Listed(f"{_HERE}.cases", "Show, dismiss and export a contradiction as a case."),
    "stale": Listed(f"{_HERE}.cases", "List what stands on a ground that fell."),
    "trace": Listed(f"{_HERE}.graph", "Show where a memory comes from and what became of it."),
    "diff": Listed(f"{_HERE}.comparing", "Show what changed between two times."),
    "history": Listed(f"{_HERE}.comparing", "Show what a memory was, from its first day on."),
    "impact": Listed(f"{_HERE}.influence", "Show what a memory reached."),
    "grounds": Listed(f"{_HERE}.influence", "Show what stood behind a memory or a run."),
    "correct": Listed(f"{_HERE}.writing", "Replace what a memory says by a new one."),
    "confirm": Listed(f"{_HERE}.writing", "Protect a memory: full confidence, no decay."),
    "retract": Listed(f"{_HERE}.writing", "Take a memory back, or restore it."),
    "source": Listed(f"{_HERE}.sources", "Tell where memories come from, and whom to trust."),
    "promote": Listed(f"{_HERE}.tiers", "Make a task's memory its project's, or everybody's."),
    "tier": Listed(f"{_HERE}.tiers", "List what a task, a project or everybody holds."),
    "receipt": Listed(f"{_HERE}.receipts", "Show what was handed out, and why."),
    "expiring": Listed(f"{_HERE}.expiring", "Show what will expire unless someone uses it."),
    "reflection": Listed(f"{_HERE}.expiring", "Print the latest reflection on the week."),
    "list": Listed(f"{_HERE}.reading", "List memories, newest first."),
    "show": Listed(f"{_HERE}.reading", "Show memories with all their fields."),
    "entities": Listed(f"{_HERE}.entities", "List entities, merge and split them."),
    "entity": Listed(f"{_HERE}.entities", "Show all about one entity."),
    "stats": Listed(f"{_HERE}.reading", "Count what is stored."),
    "verify": Listed(f"{_HERE}.operating", "Audit a database and its journal."),
    "anchor": Listed(f"{_HERE}.operating", "Print the head of a journal."),
    "repair": Listed(f"{_HERE}.operating", "Tell what of a journal is lost, and go on."),
    "audit": Listed(f"{_HERE}.auditing", "Measure duplicates, contradictions, what is stale."),
    "erase": Listed(f"{_HERE}.erasing", "Erase texts for ever, with a signed report."),
    "erasure": Listed(f"{_HERE}.erasing", "Check reports of erasures."),
    "rebuild": Listed(f"{_HERE}.operating", "Make indexes anew."),
    "db": Listed(f"{_HERE}.operating", "Look after database schemas."),
    "key": Listed(f"{_HERE}.keys", "Make, list, revoke, rotate and forget the keys of a server."),
    "serve": Listed(f"{_HERE}.serving", "Serve programs and agents over HTTP."),
    "mcp": Listed(f"{_HERE}.mcp", "Serve an agent over standard input and output."),
    "worker": Listed(f"{_HERE}.jobs", "Run every job when it is due, until stopped."),
    "jobs": Listed(f"{_HERE}.jobs", "Show when jobs are due and what ran."),
    "run": Listed(f"{_HERE}.jobs", "Run a job now."),
    "tools": Listed(f"{_HERE}.agents", "Print the tools of a language model."),
    "call": Listed(f"{_HERE}.agents", "Do one call as a language model would."),
    "embeddings": Listed(f"{_HERE}.operating", "Look after embeddings."),
    "export": Listed(f"{_HERE}.exchanging", "Write everything as JSON Lines."),
    "import": Listed(f"{_HERE}.exchanging", "Bring an export in."),
    "backup": Listed(f"{_HERE}.operating", "Copy a database into one file."),
    "restore": Listed(f"{_HERE}.operating", "Put a backup in a database's place."),
    "health": Listed(f"{_HERE}.setup", "Tell whether memories work."),
    "config": Listed(f"{_HERE}.setup", "Show the settings in force and their origins."),
}
