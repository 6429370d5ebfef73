"""Writes the generated parts of the docs: ``make references``. Tests compare them with the code."""

from __future__ import annotations

import json
from pathlib import Path

from ingest.parsers.memories import document_schema
from memgraph.config.loader import reference_table
from memgraph.surfaces.cli import reference as cli
from memgraph.surfaces.http import reference as http
from memgraph.surfaces.mcp import reference as mcp

DOCS = Path(__file__).resolve().parent
PREFIX = "`…` stands for `/v1/orchestrators/{orchestrator}`.\n"


def write(page: str, beginning: str, text: str) -> None:
    """Replace a page from this beginning on, which it must have once."""
    path = DOCS / page
    kept, _ = path.read_text(encoding="utf-8").split(beginning)
    path.write_text(kept + text, encoding="utf-8")


def main() -> None:
    """Write the references of commands, routes, tools and settings, and the schema of documents."""
    write("cli.md", "# Reference\n", f"# Reference\n\n{cli.reference()}")
    write("http.md", PREFIX, f"{PREFIX}\n{http.reference()}")
    write("mcp.md", "## Tools\n", mcp.reference())
    write("configuration.md", "| key | type |", reference_table())
    schema = json.dumps(document_schema(), indent=2, sort_keys=True, ensure_ascii=False)
    path = DOCS / "schema" / "ingest-document.schema.json"
    path.write_text(f"{schema}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
