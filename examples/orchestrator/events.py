"""What happens, as lines: for a person, or as JSON for a program."""

from __future__ import annotations

import json
import sys
from typing import Any, Protocol, TextIO


class Show(Protocol):
    """Is told of an event by its name and its fields, which are JSON values."""

    def __call__(self, event: str, **fields: Any) -> None: ...


def as_json(out: TextIO = sys.stdout) -> Show:
    """One JSON object a line."""

    def show(event: str, **fields: Any) -> None:
        print(json.dumps({"event": event, **fields}, ensure_ascii=False), file=out, flush=True)

    return show


def as_text(out: TextIO = sys.stdout) -> Show:
    """Lines for a person."""

    def show(event: str, **fields: Any) -> None:
        for line in _lines(event, fields):
            print(line, file=out, flush=True)

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
            return [f"  selected    {fields['workflow']}, seeing {_ids(fields['saw'])}"]
        case "step":
            return [f"  step        {fields['step']}, recalling {_ids(fields['recalled'])}"]
        case "remembered":
            refused = (f"{each['locator']}: {each['code']}" for each in fields["rejected"])
            return [
                f"  remembered  {_ids(fields['memory_ids'])}",
                *(f"  not kept    {each}" for each in refused),
            ]
        case "evidence":
            cut = ", cut" if fields["cut"] else ""
            found = [f"    {each['content']}  [{each['citation']}]" for each in fields["items"]]
            return [f"  evidence    {len(found)} memories{cut}", *found]
        case "task_ended":
            kept = [f"    {old} became {new}" for old, new in fields["promoted"].items()]
            return [f"  task ended  {fields['cleared']} cleared", *kept]
        case "warning" | "model_failed":
            return [f"  warning     {fields.get('code', 'model')}: {fields['text']}"]
        case _:
            told = ", ".join(f"{name} {value}" for name, value in fields.items())
            return ["", f"{event}: {told}"]


def _ids(ids: list[str]) -> str:
    return ", ".join(ids) or "nothing"
