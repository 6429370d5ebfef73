"""Entities of a text without a model: forms, lists and cue words. Pure and linear in time."""

from __future__ import annotations

from memgraph.entities.dates import find_dates
from memgraph.entities.japanese import find_japanese
from memgraph.entities.names import find_names
from memgraph.entities.patterns import code_ranges, find_patterns
from memgraph.entities.spans import EntitySpan, merge


def extract(text: str) -> list[EntitySpan]:
    """Return the entities that ``text`` names, in order, without overlap.

    Mentions, hashtags, e-mail addresses, URLs, dates, people, projects, organizations and places.
    Third-party tools, bare weekdays and months, and the content of `` `code` `` (addresses
    excepted) are not entities.
    """
    code = code_ranges(text)
    formed = merge([*find_patterns(text, code), *find_dates(text)])
    covered = sorted([(span.start, span.end) for span in formed] + code)
    found = [*formed, *find_names(text, covered)]
    found += find_japanese(text)
    return merge(found)
