"""Pairs of statements written out from families of wordings, for the relation classifier.

A family (``corpus/relation-families-*.txt``) tells one attribute in several wordings, with things
and values to put in. A seeded generator pairs them; a family is held out as a whole when the
classifier is validated, so that it is scored on attributes and wordings it never saw.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
VALUES = CORPUS / "relation-families-values.txt"
POLES = CORPUS / "relation-families-poles.txt"
# How many pairs of each kind a family gives.
SHARE = {"contradicts": 8, "updates": 5, "duplicate": 5, "other_thing": 3, "beside": 3, "part": 3}
_FIRST_GROUP = 10_000

Family = dict[str, list[str]]
Row = dict[str, Any]


def read_families(path: Path) -> dict[str, Family]:
    families: dict[str, Family] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("## "):
            name = line[3:].strip()
            families[name] = {}
        elif name and line:
            key, _, rest = line.partition(": ")
            families[name][key] = [part.strip() for part in rest.split(" | ")]
    return families


def family_groups() -> dict[str, int]:
    """The number of the group of each family."""
    names = (name for path in (VALUES, POLES) for name in read_families(path))
    return {name: _FIRST_GROUP + i for i, name in enumerate(dict.fromkeys(names))}


def family_rows(seed: int = 0) -> list[Row]:
    """All pairs of all families: ``a``, ``b``, their times, ``label``, ``group`` and ``family``."""
    rows: list[Row] = []
    sources: list[tuple[str, Callable[[random.Random], Row]]] = []
    for path, draw in ((VALUES, _draw_value), (POLES, _draw_pole)):
        for name, family in read_families(path).items():
            sources += [(name, _bind(draw, family, kind)) for kind, n in SHARE.items()
                        for _ in range(n)]  # fmt: skip
    groups = family_groups()
    seen: set[tuple[str, str]] = set()
    for number, (name, make) in enumerate(sources):
        rng = random.Random(f"{seed}/{number}")
        row = make(rng)
        if (row["a"], row["b"]) not in seen and row["a"] != row["b"]:
            seen.add((row["a"], row["b"]))
            rows.append(row | times(rng) | {"family": name, "group": groups[name]})
    return rows


def _bind(
    draw: Callable[[Family, str, random.Random], Row], family: Family, kind: str
) -> Callable[[random.Random], Row]:
    return lambda rng: draw(family, kind, rng)


def times(rng: random.Random) -> Row:
    """Gaps say nothing about the label: from minutes to most of a year."""
    first = datetime(2025, 1, 1, 8, tzinfo=UTC) + timedelta(minutes=5 * rng.randrange(100_000))
    gap = timedelta(minutes=5) * (1 + int(80_000 * rng.random() ** 4))
    return {"a_time": first.isoformat(), "b_time": (first + gap).isoformat()}


def say(form: str, rng: random.Random, **parts: str) -> str:
    text = form.format(**parts)
    style = rng.random()
    if style < 0.8:
        text = text[0].upper() + text[1:]
    return text + "." if style < 0.7 else text


def two(items: list[str], rng: random.Random) -> tuple[str, str]:
    one, two = rng.sample(items, 2)
    return one, two


def notation(value: str, rng: random.Random) -> str:
    return rng.choice(value.split(" = "))


def _draw_value(family: Family, kind: str, rng: random.Random) -> Row:
    thing, other = two(family["s"], rng)
    value, changed = two(family["v"], rng)
    first, second = two(family["f"], rng)
    same = rng.choice([value, changed])
    a = say(first, rng, s=thing, v=notation(value, rng))
    told: dict[str, Callable[[], str]] = {
        "contradicts": lambda: say(rng.choice(family["f"]), rng, s=thing,
                                    v=notation(changed, rng)),
        "updates": lambda: say(rng.choice(family["u"]), rng, s=thing, v=notation(changed, rng),
                                w=notation(value, rng)),
        "duplicate": lambda: say(second, rng, s=thing, v=notation(value, rng)),
        "other_thing": lambda: say(rng.choice(family["f"]), rng, s=other, v=notation(same, rng)),
        "beside": lambda: say(rng.choice(family["o"]), rng, s=thing),
        "part": lambda: say(rng.choice(family["q"]), rng, s=thing, v=notation(same, rng)),
    }  # fmt: skip
    return {"a": a, "b": told[kind](), "label": _label(kind)}


def _draw_pole(family: Family, kind: str, rng: random.Random) -> Row:
    thing, other = two(family["s"], rng)
    here, there, change = rng.choice([("+", "-", ">"), ("-", "+", "<")])
    first, second = two(family[here], rng)
    told = {
        "contradicts": rng.choice(family[there]), "updates": rng.choice(family[change]),
        "duplicate": second if here == "+" else first, "beside": rng.choice(family["o"]),
        "part": rng.choice(family["q"]), "other_thing": rng.choice(family[there]),
    }  # fmt: skip
    if (
        kind == "duplicate" and here == "-"
    ):  # the ways to break a claim don't follow from each other
        first, told["duplicate"] = two(family["+"], rng)
    a = say(first, rng, s=thing)
    b = say(told[kind], rng, s=other if kind == "other_thing" else thing)
    return {"a": a, "b": b, "label": _label(kind)}


def _label(kind: str) -> str:
    return "compatible" if kind in {"other_thing", "beside", "part"} else kind


def shown(rows: list[Row], count: int) -> Iterator[str]:
    """Some of the pairs as lines, to be read over."""
    for row in random.Random(1).sample(rows, count):
        yield f"{row['family']:16} {row['label']:12} {row['a']} || {row['b']}"


if __name__ == "__main__":
    print("\n".join(shown(family_rows(), 60)))
