"""Extract entities from text by patterns and word lists."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from memgraph.model.enums import EntityType
from memgraph.text.dates import find_dates
from memgraph.text.gazetteer import gazetteer
from memgraph.text.names import EntitySpan, find_names, merge

_MAX_LOCAL: Final = 64
_MAX_URL: Final = 2_048

_LOCAL_PART = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]")
_DOMAIN = re.compile(r"[^\W_](?:[\w-]{0,62})(?:\.[^\W_][\w-]{0,62}){1,8}")
_HANDLE = re.compile(r"[^\W\d][\w-]{0,63}(?:\.[^\W\d_][\w-]{0,63}){0,3}")
_TAG = re.compile(r"[\w-]{1,80}")
_HEX_COLOUR = re.compile(r"(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{8}|[0-9a-fA-F]{3})")
_URL_BODY = re.compile(rf"[^\s<>\"“”«»`\u3000-\u30ff\u4e00-\u9fff]{{1,{_MAX_URL}}}")
_CODE = re.compile(r"(`{1,3})[^`]{1,4000}\1")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}
_TRAILING: Final = ".,;:!?'\"*_…。、，！？」』）"


def code_ranges(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each `` `code` `` span in ``text``."""
    return [match.span() for match in _CODE.finditer(text)] if "`" in text else []


def find_patterns(text: str, code: list[tuple[int, int]]) -> Iterator[EntitySpan]:
    """Yield e-mail addresses, URLs, mentions and hashtags; the latter two outside ``code`` only."""
    if "://" in text or "www." in text.lower():
        yield from _urls(text)
    if "@" in text:
        yield from _at_signs(text, code)
    if "#" in text:
        yield from _hashtags(text, code)


def _span(text: str, start: int, end: int, kind: EntityType, confidence: float) -> EntitySpan:
    return EntitySpan(text[start:end], start, end, kind, confidence)


def _positions(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


_WWW: Final = re.compile(r"www\.", re.IGNORECASE)


def _urls(text: str) -> Iterator[EntitySpan]:
    done = 0
    starts = [_scheme_start(text, at) for at in _positions(text, "://")]
    places = (match.start() for match in _WWW.finditer(text))
    starts += [at for at in places if at == 0 or not _word(text[at - 1])]
    for start in sorted(at for at in starts if at >= 0):
        if start < done:
            continue
        match = _URL_BODY.match(text, start)
        if match is None:
            continue
        end = _without_trailing(text, start, match.end())
        host = text.find("://", start, start + 16)
        body = host + 3 if host >= 0 else start + 4
        if (end > body and _word(text[body])) or text[body : body + 1] == "[":
            yield _span(text, start, end, EntityType.URL, 1.0)
            done = end


def _scheme_start(text: str, at: int) -> int:
    start = at
    while start > 0 and at - start < 12 and (text[start - 1].isalnum() or text[start - 1] in "+-"):
        start -= 1
    scheme = text[start:at].lower()
    schemes = gazetteer().cues["scheme"]
    return start if scheme in schemes or scheme.partition("+")[0] in schemes else -1


def _without_trailing(text: str, start: int, end: int) -> int:
    """Drop closing punctuation that belongs to the sentence; keep balanced brackets."""
    while end > start:
        last = text[end - 1]
        opener = _CLOSERS.get(last)
        if last in _TRAILING or (
            opener
            and end - start < 300
            and text.count(last, start, end) > text.count(opener, start, end)
        ):
            end -= 1
        else:
            break
    return end


def _at_signs(text: str, code: list[tuple[int, int]]) -> Iterator[EntitySpan]:
    for at in _positions(text, "@"):
        start = at
        while start > 0 and at - start <= _MAX_LOCAL and _LOCAL_PART.match(text[start - 1]):
            start -= 1
        while start < at and text[start] in ".'*`/=&|~{}!?#^":
            start += 1
        domain = _DOMAIN.match(text, at + 1)
        if start < at and domain and text[at - 1] != ".":
            end = domain.end()
            while text[end - 1] in "-_":
                end -= 1
            yield _span(text, start, end, EntityType.EMAIL, 0.99)
        elif at == 0 or not (_word(text[at - 1]) or text[at - 1] in ".@`/"):
            yield from _mention(text, at, code)


def _mention(text: str, at: int, code: list[tuple[int, int]]) -> Iterator[EntitySpan]:
    match = _HANDLE.match(text, at + 1)
    if match is None or _inside(at, code):
        return
    end = match.end()
    while text[end - 1] in "-_":
        end -= 1
    following = text[end : end + 1]
    if following in ("(", "/", "@"):
        return
    yield _span(text, at, end, EntityType.MENTION, 0.95)


def _hashtags(text: str, code: list[tuple[int, int]]) -> Iterator[EntitySpan]:
    for at in _positions(text, "#"):
        if at > 0 and (_word(text[at - 1]) or text[at - 1] in "#&/"):
            continue
        match = _TAG.match(text, at + 1)
        if match is None or _inside(at, code):
            continue
        tag = match.group().rstrip("-_")
        if not any(character.isalpha() for character in tag) or tag[0] == "-":
            continue
        colour = _HEX_COLOUR.fullmatch(tag) and any(character.isdigit() for character in tag)
        if not colour:
            yield _span(text, at, at + 1 + len(tag), EntityType.HASHTAG, 0.95)


def _inside(at: int, ranges: list[tuple[int, int]]) -> bool:
    position = bisect_right(ranges, (at, sys.maxsize)) - 1
    return position >= 0 and ranges[position][0] <= at < ranges[position][1]


def _word(character: str) -> bool:
    return character.isalnum() or character == "_"


def extract(text: str) -> list[EntitySpan]:
    """Return the entities in ``text``, in order, without overlap.

    Entities are mentions, hashtags, e-mail addresses, URLs, dates, people, projects, organizations
    and places. Third-party tools, weekdays and months without a date, and the content of
    `` `code` `` (except addresses and URLs) are not entities.
    """
    code = code_ranges(text)
    dates = (_span(text, *place, EntityType.DATE, 0.97) for place in find_dates(text))
    formed = merge([*find_patterns(text, code), *dates])
    covered = sorted([(span.start, span.end) for span in formed] + code)
    return merge([*formed, *find_names(text, covered)])
