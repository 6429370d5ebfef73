"""Names in a text, in the form in which storage keeps and looks up entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.storage.entities import EntityName

NameFinder = Callable[[str], Sequence[EntityName]]

# A lone capitalised word that nothing around it explains is no entity worth a link.
SURE = 0.5


def find_names(text: str) -> list[EntityName]:
    """The entities that rules find in a text, each once, in the order of their first mention."""
    from memgraph.entities.normalise import canonical
    from memgraph.entities.regex import extract

    found: dict[tuple[str, str], EntityName] = {}
    for span in extract(text):
        if span.confidence < SURE:
            continue
        key = canonical(span.text)
        if key:
            found.setdefault((key, span.type), EntityName(key, span.text, span.type))
    return list(found.values())
