"""What happens, as lines: for a person, or as JSON for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TextIO

FIRST = 3  # of the memories that a prompt was given are shown to a person

Show = Callable[..., None]
"""Is told of an event by its name and, as keywords, its fields, which are JSON values."""


def shown(*, as_json: bool, out: TextIO | None = None) -> Show:
    """Writes lines for a person, or a JSON object a line; by default to standard output."""

    def show(event: str, **fields: Any) -> None:
        told = {"event": event, **fields}
        lines = [json.dumps(told, ensure_ascii=False)] if as_json else _lines(event, fields)
        into = out or sys.stdout
        into.write("".join(f"{line}\n" for line in lines))
        into.flush()

    return show


def _lines(event: str, fields: dict[str, Any]) -> list[str]:
    match event:
        case "message":
            return ["", f"{fields['channel']}/{fields['speaker']}: {fields['text']}"]
        case "reply":
            return [f"{fields['channel']}/assistant: {fields['text']}"]
        case "captured":
            return [f"  captured    {fields['memory_id']}"]
        case "selected":
            return [f"  selected    {fields['workflow']}", *_listed("seen", fields["saw"])]
        case "step":
            return [f"  step        {fields['step']}", *_listed("recalled", fields["recalled"])]
        case "remembered":
            refused = (f"{each['locator']}: {each['code']}" for each in fields["rejected"])
            return [
                f"  remembered  {', '.join(fields['memory_ids']) or 'nothing'}",
                *(f"  not kept    {each}" for each in refused),
            ]
        case "evidence":
            cited = [{"text": f"{each['text']} <- {each['citation']}"} for each in fields["items"]]
            return _listed("evidence", cited)
        case "task_ended":
            kept = [f"    {old} became {new}" for old, new in fields["promoted"].items()]
            return [f"  task ended  {fields['cleared']} cleared", *kept]
        case "warning" | "model_failed":
            return [f"  warning     {fields.get('code', 'model')}: {fields['text']}"]
        case _:
            return ["", ", ".join(f"{name} {value}" for name, value in fields.items())]


def _listed(verb: str, memories: list[dict[str, str]]) -> list[str]:
    first = (f"    - {each['text']}" for each in memories[:FIRST])
    return [f"  {verb:<11} {len(memories)}", *first]
