"""The keys of the settings, read from the schema: for loading, for describing and for the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memgraph.config.schema import Settings


@dataclass(frozen=True, slots=True)
class SettingReference:
    """One setting.

    Attributes:
        name: dotted, e.g. ``memory.retrieval.top_n``.
        kind: bool, int, float, str or tuple (of str).
        choices: the allowed texts, where only some are.
        bounds: e.g. ``1..1000``; empty when there are none.
        global_only: not allowed in an orchestrator's own file.
    """

    name: str
    kind: type
    default: Any
    choices: tuple[str, ...]
    bounds: str
    description: str
    global_only: bool

    @property
    def type_text(self) -> str:
        """Return the type as text for people."""
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        return "list of str" if self.kind is tuple else self.kind.__name__


@cache
def keys() -> dict[str, SettingReference]:
    """Return every key by its dotted name, in the order of the schema."""
    return {key.name: key for key in _walk(Settings, "")}


@cache
def groups() -> frozenset[str]:
    """Return the dotted names of all tables, e.g. ``memory.retrieval``."""
    return frozenset(
        name.rsplit(".", depth)[0] for name in keys() for depth in range(1, name.count(".") + 1)
    )


def reference_table() -> str:
    """Return the Markdown table of docs/configuration.md, one row for each key."""
    rows = ["| key | type | default | range | meaning |", "|---|---|---|---|---|"]
    for key in keys().values():
        meaning = f"{key.description} Global only." if key.global_only else key.description
        rows.append(
            f"| `{key.name}` | {key.type_text} | `{_as_toml(key.default)}` "
            f"| {key.bounds} | {meaning} |"
        )
    return "\n".join(rows) + "\n"


def _as_toml(value: Any) -> str:
    """Return a default as it is written in TOML; JSON writes these types the same way."""
    return json.dumps(value, ensure_ascii=False)


def _walk(
    group: type[BaseModel], prefix: str, *, global_only: bool = False
) -> Iterator[SettingReference]:
    """Yield the keys of a group; properties of a group hold for all its keys."""
    for name, field in group.model_fields.items():
        annotation, extra = field.annotation, field.json_schema_extra
        is_global = global_only or (isinstance(extra, dict) and bool(extra.get("global_only")))
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _walk(annotation, f"{prefix}{name}.", global_only=is_global)
        else:
            yield _key(prefix + name, field, global_only=is_global)


def _key(name: str, field: FieldInfo, *, global_only: bool) -> SettingReference:
    annotation: Any = field.annotation
    # pydantic has taken Annotated apart: its constraints are in field.metadata.
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    kind = str if choices else get_origin(annotation) or annotation
    return SettingReference(
        name=name,
        kind=kind,
        default=field.default,
        choices=choices,
        bounds=_bounds(field),
        description=field.description or "",
        global_only=global_only,
    )


def _bounds(field: FieldInfo) -> str:
    bounds: dict[str, float] = {}
    for constraint in field.metadata:
        for name in ("ge", "gt", "le"):
            if (limit := getattr(constraint, name, None)) is not None:
                bounds[name] = limit
    if not bounds:
        return ""
    low = f"{bounds['ge']:g}" if "ge" in bounds else f"over {bounds['gt']:g}"
    joiner = ".." if "ge" in bounds else " to "
    return f"{low}{joiner}{bounds['le']:.10g}"
