"""Composing a bulletin from candidates, for one view."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from memgraph.config.schema import BulletinSettings
from memgraph.model.context import Bulletin, BulletinLine
from memgraph.rules import bulletin as policy
from memgraph.rules.scope import Viewer, predicate


def composed(
    offered: Mapping[policy.BulletinSection, list[policy.LayoutEntry]],
    settings: BulletinSettings,
    *,
    change_seq: int,
    key: str,
    totals: Mapping[policy.BulletinSection, int] | None = None,
) -> Bulletin:
    """Return the bulletin of the candidates; pure.

    Args:
        totals: as of ``policy.compose``.
    """
    chosen = policy.compose(offered, settings.max_chars, settings.max_line_chars, totals)
    # Built without validation, being made of our own.
    return Bulletin.model_construct(
        sections={
            section.value: tuple(
                BulletinLine.model_construct(
                    text=line.plain(settings.max_line_chars), memory_ids=line.cited
                )
                for line in chosen.lines[section]
            )
            for section in policy.BulletinSection
        },
        text=chosen.markdown,
        change_seq=change_seq,
        view_key=key,
        size=len(chosen.markdown),
        left_out={
            section.value: chosen.totals[section] - len(chosen.lines[section])
            for section in policy.BulletinSection
        },
    )


def view_key(viewer: Viewer, settings: BulletinSettings) -> str:
    """Return 16 hexadecimal digits that identify a view and its limits."""
    limits = (settings.max_chars, settings.max_line_chars, settings.min_confidence)
    return _view_key(viewer, limits)


@lru_cache(maxsize=256)
def _view_key(viewer: Viewer, limits: tuple[float, ...]) -> str:
    reader = f"{predicate(viewer)!r} {limits}"
    return hashlib.sha256(reader.encode()).hexdigest()[:16]
