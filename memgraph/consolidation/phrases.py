"""Phrases of talk as patterns, read once from the data file and compiled at their first use."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parent / "data" / "phrases.txt"
_HEAD: Final = re.compile(r"\[(?P<name>[\w ]+)\] (?P<template>.+)")
_REFERENCE: Final = re.compile(r"<<([\w ]+)>>")


@cache
def phrases(name: str) -> re.Pattern[str]:
    """The pattern of a section of ``phrases.txt``. Texts are expected with straight apostrophes.

    Raises:
        KeyError: there is no such section.
    """
    return re.compile(_source(name), re.IGNORECASE)


def _source(name: str) -> str:
    template, lines = _sections()[name]
    whole = template.replace("@@", "|".join(lines))
    return _REFERENCE.sub(lambda found: _source(found[1]), whole)


@cache
def _sections() -> dict[str, tuple[str, list[str]]]:
    sections: dict[str, tuple[str, list[str]]] = {}
    lines: list[str] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if head := _HEAD.fullmatch(line):
            lines = []
            sections[head["name"]] = (head["template"], lines)
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections
