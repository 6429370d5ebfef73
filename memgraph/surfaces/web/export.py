"""Export a case as an HTML file.

The HTML file needs no server and has no scripts, so that it can be archived, mailed and printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

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
    """Return the HTML file of a case: both sides, their evidence, the decision and its journal.

    Args:
        lines: the source lines of the sides, by memory id; may be incomplete.
        root: paths below this folder are shown relative to it; None: paths are shown in full.
    """
    # Inlined, since the file must be self-contained.
    style = Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8"))  # our own file
    template = _environment(root).get_template("case_document.html")
    return template.render(
        case=case, orchestrator=orchestrator, lines=lines, texts=texts_of(case), style=style
    )


@cache
def _environment(root: Path | None) -> jinja2.Environment:
    return environment({"version": __version__, "place": ""}, root)


# What differs between the texts of the two sides.

MOST_WORDS: Final = 1_000
"""The number of words in which differences are looked for."""
Runs = list[tuple[bool, str]]
"""A text in runs of words, each with True where the other text differs."""


def texts_of(case: Case) -> tuple[Runs, Runs]:
    """Return the texts of the two sides, with what differs."""
    first, second = (side.memory.content for side in case.sides)
    return differing(first, second)


def differing(first: str, second: str) -> tuple[Runs, Runs]:
    """Return two texts as runs; in texts without a common word nothing is marked. Pure."""
    tokens = [re.findall(r"\s*\S+|\s+$", text) for text in (first, second)]
    old, new = ([token.strip() for token in each[:MOST_WORDS]] for each in tokens)
    sides: tuple[Runs, Runs] = ([], [])
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    if not any(tag == "equal" for tag, *_ in codes):
        return [(False, first)], [(False, second)]
    for tag, i, j, m, n in codes:
        for side, run in zip(sides, (tokens[0][i:j], tokens[1][m:n]), strict=True):
            text = "".join(run)
            start = len(text) - len(text.lstrip())
            side += [(False, text[:start]), (tag != "equal", text[start:])] if text else []
    for side, rest in zip(sides, tokens, strict=True):
        side.append((False, "".join(rest[MOST_WORDS:])))
    return sides
