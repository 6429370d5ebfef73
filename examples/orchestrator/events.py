"""What happens, as lines: for a person, or as JSON for a program."""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol, TextIO

FIRST = 3
"""Of the memories that a prompt was given a person is shown so many."""


class Show(Protocol):
    """Is told of an event by its name and its fields, which are JSON values."""

    def __call__(self, event: str, **fields: Any) -> None: ...


def as_json(out: TextIO | None = None) -> Show:
    """One JSON object a line, by default to standard output."""

    def show(event: str, **fields: Any) -> None:
        _say(json.dumps({"event": event, **fields}, ensure_ascii=False), out)

    return show


def as_text(out: TextIO | None = None) -> Show:
    """Lines for a person, by default to standard output."""

    def show(event: str, **fields: Any) -> None:
        for line in _lines(event, fields):
            _say(line, out)

    return show


def _say(line: str, out: TextIO | None) -> None:
    into = out or sys.stdout
    into.write(f"{line}\n")
    into.flush()


def _lines(event: str, fields: dict[str, Any]) -> list[str]:
    match event:
        case "message":
            return ["", f"{fields['channel']}/{fields['speaker']}: {fields['text']}"]
        case "reply":
            return [f"{fields['channel']}/assistant: {fields['text']}"]
        case "captured":
            return [f"  captured    {fields['memory_id']}"]
        case "selected":
            return [f"  selected    {fields['workflow']}", *_shown("seen", fields["saw"])]
        case "step":
            return [f"  step        {fields['step']}", *_shown("recalled", fields["recalled"])]
        case "remembered":
            refused = (f"{each['locator']}: {each['code']}" for each in fields["rejected"])
            return [
                f"  remembered  {', '.join(fields['memory_ids']) or 'nothing'}",
                *(f"  not kept    {each}" for each in refused),
            ]
        case "evidence":
            cited = [{"text": f"{each['text']} <- {each['citation']}"} for each in fields["items"]]
            return _shown("evidence", cited)
        case "task_ended":
            kept = [f"    {old} became {new}" for old, new in fields["promoted"].items()]
            return [f"  task ended  {fields['cleared']} cleared", *kept]
        case "warning" | "model_failed":
            return [f"  warning     {fields.get('code', 'model')}: {fields['text']}"]
        case _:
            told = ", ".join(f"{name} {value}" for name, value in fields.items())
            return ["", f"{event}: {told}"]


def _shown(verb: str, memories: list[dict[str, str]]) -> list[str]:
    """The first few of some memories."""
    more = [f"    … and {len(memories) - FIRST} more"] if len(memories) > FIRST else []
    return [
        f"  {verb:<11} {'' if memories else 'nothing'}".rstrip(),
        *(f"    - {each['text']}" for each in memories[:FIRST]),
        *more,
    ]
