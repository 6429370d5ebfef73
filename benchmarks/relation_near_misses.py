"""Pairs that look like a change or a contradiction and are none, for the relation classifier.

When a statement is stored, what it is compared with mostly shares a name, a head noun or a turn of
phrase with it and nothing more. The families of ``relation_families`` are said here of compound
things ("the walled orchard", "the small orchard"), of which two may share a part; every fifth pair
is a true one, so that a compound thing is no evidence by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from relation_families import (
    CORPUS,
    VALUES,
    Family,
    Row,
    family_groups,
    notation,
    read_families,
    say,
    times,
    two,
)

NEAR_MISSES = CORPUS / "relation-near-misses.txt"
# How many pairs of each kind a family gives; "changed" and "disputed" are true.
SHARE: Final = {
    "other_thing": 6, "other_thing_changed": 8, "other_attribute": 8,
    "other_attribute_changed": 8, "aside": 4, "aside_changed": 8, "changed": 5, "disputed": 5,
}  # fmt: skip
_TRUE: Final = {"changed": "updates", "disputed": "contradicts"}
_PARTED: Final = 0.6
"""The share of pairs of two things that have a part in common."""
# Families whose attributes bear on one another.
_BOUND: Final = (
    {"diet", "meat", "allergy"}, {"marital", "alone"}, {"manager", "owner"}, {"venue", "hosting"},
    {"opening", "roundclock"}, {"cap", "capacity", "headcount"}, {"rent", "free", "payer"},
    {"deadline", "duration"}, {"datastore", "hosting"}, {"licence", "public"},
)  # fmt: skip


def near_rows(seed: int = 0) -> list[Row]:
    """All pairs: as ``relation_families.family_rows`` gives them, and their ``kind``. A family's
    pairs bear the group of the family, so that both are held out together."""
    told = read_families(NEAR_MISSES)
    asides = told.pop("asides")
    families = read_families(VALUES)
    groups = family_groups()
    rows: list[Row] = []
    for name, family in families.items():
        others = [f for n, f in families.items() if n != name and not _bound(n, name)]
        for kind, count in SHARE.items():
            for number in range(count):
                rng = random.Random(f"{seed}/{name}/{kind}/{number}")
                things = told[rng.choice(sorted(told))]
                row = _draw(kind, family, rng.choice(others), things, asides, rng)
                label = _TRUE.get(kind, "compatible")
                row |= times(rng) | {"label": label, "group": groups[name]}
                rows.append(row | {"family": name, "kind": kind})
    return rows


def _bound(one: str, two: str) -> bool:
    return any(one in group and two in group for group in _BOUND)


def _things(parts: Family, rng: random.Random) -> tuple[str, str]:
    """Two things of a kind, often with a part in common."""
    (form,) = parts["form"]
    (first, other_first), (second, other_second) = two(parts["a"], rng), two(parts["b"], rng)
    if rng.random() < _PARTED:
        if rng.random() < 0.5:
            other_first = first
        else:
            other_second = second
    return form.format(a=first, b=second), form.format(a=other_first, b=other_second)


def _draw(
    kind: str, family: Family, other: Family, parts: Family, asides: Family, rng: random.Random
) -> dict[str, Any]:
    thing, another = _things(parts, rng)
    value, changed = two(family["v"], rng)
    foreign, foreign_changed = two(other["v"], rng)

    def told(form: str, s: str, v: str, w: str) -> str:
        return say(form, rng, s=s, v=notation(v, rng), w=notation(w, rng))

    later: dict[str, Callable[[], str]] = {
        "other_thing": lambda: told(rng.choice(family["f"]), another,
                                    rng.choice([value, changed]), value),
        "other_thing_changed": lambda: told(rng.choice(family["u"]), another, changed,
                                            rng.choice(family["v"])),
        "other_attribute": lambda: told(rng.choice(other["f"]), thing, foreign, foreign_changed),
        "other_attribute_changed": lambda: told(rng.choice(other["u"]), thing, foreign,
                                                foreign_changed),
        "aside": lambda: told(rng.choice(asides["plain"]), thing, "", ""),
        "aside_changed": lambda: told(rng.choice(asides["changed"]), thing, "", ""),
        "changed": lambda: told(rng.choice(family["u"]), thing, changed, value),
        "disputed": lambda: told(rng.choice(family["f"]), thing, changed, value),
    }  # fmt: skip
    first = told(rng.choice(family["f"]), thing, value, changed)
    if kind.startswith("aside") and rng.random() < 0.5:
        first = told(rng.choice(asides["plain"] + asides["changed"]), thing, "", "")
    return {"a": first, "b": later[kind]()}
