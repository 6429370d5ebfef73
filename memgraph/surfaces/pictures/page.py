"""A self-contained page around a drawing: the picture, and its content in words."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2733; --line: #dfe4e8; }
@media (prefers-color-scheme: dark) { :root { --paper: #14191f; --ink: #e6eaee; --line: #36414c; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
figure { margin: 0; padding: 1rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto; margin: auto; }
table { width: 100%; margin-top: 1.5rem; border-collapse: collapse; }
caption { padding: .5rem 0; text-align: left; font-weight: 600; }
th, td { padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of texts; every cell is shown as it is."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def page(title: str, svg: bytes, listings: Sequence[Listing], *, notes: Sequence[str] = ()) -> str:
    """Return self-contained HTML: no script, no font, no other file. Texts are escaped."""
    drawing = svg.decode()
    # What comes before the element belongs to a file of its own.
    drawing = drawing[drawing.index("<svg") :]
    shown = html.escape(title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy"'
            " content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{shown}</title><style>{_STYLE}</style></head>",
            f'<body><main><h1>{shown}</h1><figure role="img" aria-label="{shown}">',
            drawing,
            "</figure>",
            *(f"<p>{html.escape(each)}</p>" for each in notes),
            *(_table(each) for each in listings if each.rows),
            "</main></body></html>\n",
        ]
    )


def _table(listing: Listing) -> str:
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in listing.columns)
    rows = "\n".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for row in listing.rows
    )
    caption = html.escape(listing.caption)
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>\n{rows}\n</tbody></table>"
    )
