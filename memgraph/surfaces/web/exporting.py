"""A case as one HTML file: to be kept, mailed or printed, without a server and without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from memgraph import __version__
from memgraph.surfaces.web.rendering import FOLDER, environment

if TYPE_CHECKING:
    import jinja2

    from memgraph.model.cases import Case
    from memgraph.model.influence import SourceLines


def case_document(
    case: Case,
    *,
    orchestrator: str,
    lines: Mapping[str, SourceLines],
    root: Path | None = None,
) -> str:
    """A case with both sides, what speaks for each, what was decided, and the journal of it.

    Args:
        lines: what a side was read from, by memory id; of one that is not there none is shown.
        root: files below it are named as they lie there; None: by their whole paths.
    """
    # A browser that opens it from a disk is told by nobody else what it may load.
    style = Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8"))  # our own file
    template = _environment(root).get_template("case_document.html")
    return template.render(case=case, orchestrator=orchestrator, lines=lines, style=style)


@cache
def _environment(root: Path | None) -> jinja2.Environment:
    return environment({"version": __version__, "place": "", "csrf_field": ""}, root)
