"""What the site does with pages that are written to be read in the repository, too."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
# The text of a link, and a target that is neither an address nor an anchor.
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """Append the decisions to the navigation, by subject as their index lists them."""
    index = (DOCS / "decisions" / "index.md").read_text("utf-8")
    subjects: list[Any] = ["decisions/index.md"]
    for section in index.split("\n## ")[1:]:
        pages = re.findall(r"^- \[\d+\]\((.*?)\)", section, re.MULTILINE)
        subjects.append({section.partition("\n")[0]: [f"decisions/{page}" for page in pages]})
    config.nav.append({"Decisions": subjects})
    return config


def on_post_build(*, config: Any) -> None:
    """Put every page's Markdown beside it, and llms.txt, an index of them for language models."""
    site = Path(config.site_dir)
    for path in sorted(DOCS.rglob("*.md")):
        shutil.copyfile(path, site / path.relative_to(DOCS))
    _, _, body = (DOCS / "index.md").read_text("utf-8").partition("\n\n")
    summary, *_ = body.split("\n\n")
    rows = re.findall(r"^\| (\[.*\)) \| (.*) \|$", body, re.MULTILINE)
    lines = [f"- {links}: {subject}" for links, subject in rows]
    text = f"# memgraph\n\n> {' '.join(summary.split())}\n\n## Docs\n\n" + "\n".join(lines)
    (site / "llms.txt").write_text(text + "\n", "utf-8")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replace links to files of the repository that are no pages by their text.

    A target that does not exist stays, and fails the strict build.
    """
    folder = (DOCS / page.file.src_uri).parent

    def replace(match: re.Match[str]) -> str:
        target = (folder / match["target"]).resolve()
        is_page = target.is_relative_to(DOCS) and target.is_file()
        return match[0] if is_page or not target.exists() else match["text"]

    return _LINK.sub(replace, markdown)
