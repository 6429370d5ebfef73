"""A case as one HTML file: to be kept, mailed or printed, without a server and without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from memgraph import __version__
from memgraph.surfaces.web.render import FOLDER, environment

if TYPE_CHECKING:
    import jinja2

    from memgraph.model.graph import Case
    from memgraph.model.influence import SourceLines


def case_document(
    case: Case,
    *,
    orchestrator: str,
    lines: Mapping[str, SourceLines],
    root: Path | None = None,
) -> str:
    """Return a case with both sides, the evidence for each, the decision, and its journal.

    Args:
        lines: the source lines of each side, by memory id; a missing side shows none.
        root: paths of files below it are relative to it; None: whole paths.
    """
    # A browser that opens it from a disk is told by nobody else what it may load.
    style = Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8"))  # our own file
    template = _environment(root).get_template("case_document.html")
    return template.render(case=case, orchestrator=orchestrator, lines=lines, style=style)


@cache
def _environment(root: Path | None) -> jinja2.Environment:
    return environment({"version": __version__, "place": "", "csrf_field": ""}, root)
