"""Names in Japanese text, where neither spaces nor capitals mark them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from memgraph.entities.gazetteer import gazetteer
from memgraph.entities.spans import EntitySpan
from memgraph.model.enums import EntityType

_ANY = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff]")
_RUN = re.compile(r"[\u4e00-\u9fff々]{1,40}|[\u30a1-\u30faー・]{1,40}")
_HONORIFICS: Final = ("さん", "様", "さま", "氏", "くん", "ちゃん", "先生", "部長", "課長", "社長")
_TITLES: Final = ("部長", "課長", "社長", "先生", "教授", "係長", "店長", "会長", "様", "氏", "君")
_COMPANY: Final = ("株式会社", "有限会社", "合同会社")
_INSTITUTIONS: Final = ("大学", "銀行", "病院", "研究所", "財団", "協会", "高校", "省", "庁")
_PLACES: Final = ("市", "県", "区", "町", "村", "駅", "島", "川", "山", "湖", "通り", "空港")
_PARTICLES: Final = ("は", "が", "の", "と", "に", "を", "へ", "も", "、", "：", ":")


def find_japanese(text: str) -> Iterator[EntitySpan]:
    """Yield people before honorifics, companies, institutions and places in Japanese text."""
    if text.isascii() or not _ANY.search(text):
        return
    for match in _RUN.finditer(text):
        yield from _run(text, match.start(), match.end())


def _run(text: str, start: int, end: int) -> Iterator[EntitySpan]:
    run = text[start:end]
    person = _person_end(text, start, end)
    if person is not None:
        yield _span(text, start, person, EntityType.PERSON, 0.9)
        return
    if any(company in run for company in _COMPANY) and run not in _COMPANY:
        yield _span(text, start, end, EntityType.ORGANIZATION, 0.9)
        return
    if run in gazetteer().organizations:
        yield _span(text, start, end, EntityType.ORGANIZATION, 0.9)
        return
    if run.endswith(_INSTITUTIONS) and len(run) > 2 and run not in gazetteer().cues["ja_ordinary"]:
        yield _span(text, start, end, EntityType.ORGANIZATION, 0.8)
        return
    if run in gazetteer().cues["ja_surname"] and text.startswith(_PARTICLES, end):
        yield _span(text, start, end, EntityType.PERSON, 0.6)
        return
    yield from _place(text, start, end)


def _person_end(text: str, start: int, end: int) -> int | None:
    """Return the end of a name that an honorific follows, or that a title closes."""
    run = text[start:end]
    for title in _TITLES:
        name = run.removesuffix(title)
        is_surname = name in gazetteer().cues["ja_surname"]
        if name != run and (is_surname or (0 < len(name) <= 4 and title in ("様", "氏"))):
            return start + len(name)
    if text.startswith(_HONORIFICS, end) and len(run) <= 12:
        return end
    return None


def _place(text: str, start: int, end: int) -> Iterator[EntitySpan]:
    run = text[start:end]
    if run.endswith(_PLACES) and 2 <= len(run) <= 8 and run not in gazetteer().cues["ja_ordinary"]:
        yield _span(text, start, end, EntityType.LOCATION, 0.7)
        return
    for length in range(min(len(run), _longest_place()), 1, -1):
        if run[:length] in gazetteer().places:
            yield _span(text, start, start + length, EntityType.LOCATION, 0.8)
            return


@cache
def _longest_place() -> int:
    return max(len(place) for place in gazetteer().places if _ANY.search(place))


def _span(text: str, start: int, end: int, kind: EntityType, confidence: float) -> EntitySpan:
    return EntitySpan(text[start:end], start, end, kind, confidence)
