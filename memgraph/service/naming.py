"""Names in a text, in the form in which storage keeps and looks up entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from memgraph.model.enums import EntityType
from memgraph.storage.entities import EntityName

NameFinder = Callable[[str], Sequence[EntityName]]

# A lone capitalised word that nothing around it explains is no entity worth a link.
SURE = 0.5
_NAMES = 4_096


def find_names(text: str) -> list[EntityName]:
    """The entities that rules find in a text, each once, in the order of their first mention."""
    from memgraph.entities.regex import extract

    found: dict[tuple[str, str], EntityName] = {}
    for span in extract(text):
        if span.confidence >= SURE and (name := _name(span.text, span.type)) is not None:
            found.setdefault((name.key, name.type), name)
    return list(found.values())


# Who is talked of once is talked of again.
@lru_cache(maxsize=_NAMES)
def _name(written: str, kind: EntityType) -> EntityName | None:
    from memgraph.entities.normalise import canonical

    key = canonical(written)
    return EntityName(key, written, kind) if key else None
