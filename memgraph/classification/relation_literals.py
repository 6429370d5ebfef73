"""Addresses, versions, host names and mail addresses: two statements that differ in one of them.

To the words of a statement these are names or parts of numbers, so a pair that differs in nothing
else says little to the learned head. Here the one such value of each is taken out; the pair counts
where the rest is the same and says what its thing has one of, "has the range", "the host is".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple

from memgraph.classification.relation_lexicon import ENVIRONMENTS, words
from memgraph.classification.relation_tokens import Token, tokenize

_OCTETS: Final = r"(?:\d{1,3}\.){3}\d{1,3}"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# The last part of a name in a public or a private zone has letters only, and is no file's ending.
_HOST: Final = rf"(?:{_LABEL}\.)+[A-Za-z]{{2,24}}"
_FILES: Final = words(
    "md txt py js ts go rs rb sh tf json yaml yml toml ini cfg conf xml html csv pdf sql log zip"
    " gz tar jar png jpg svg java css lock env exe dll so bak tmp doc docx xls xlsx"
    " proto hcl tfvars tfstate"
)
_LITERAL: Final = re.compile(
    r"(?<![\w./@:-])(?:"
    rf"(?P<mail>[\w.+-]{{1,64}}@{_HOST})"
    rf"|(?P<network>{_OCTETS}/\d{{1,2}}|[0-9A-Fa-f]{{0,4}}(?::[0-9A-Fa-f]{{0,4}}){{2,7}}/\d{{1,3}})"
    rf"|(?P<address>{_OCTETS}|[0-9A-Fa-f]{{0,4}}(?::[0-9A-Fa-f]{{0,4}}){{2,7}})"
    r"|(?P<version>v?\d+(?:\.\d+){2,3}(?:[-+][0-9A-Za-z.]*[0-9A-Za-z])?|v\d+(?:\.\d+)?)"
    rf"|(?P<host>{_HOST})"
    r")(?![\w/@:-]|\.\w)"
)
_DATE: Final = re.compile(r"\d\d?\.\d\d?\.(?:\d\d){1,2}")
_TIME: Final = re.compile(r"\d\d?(?::\d\d){1,2}")
_VERSION_BEFORE: Final = re.compile(r"\b(?:versions?|releases?) $", re.IGNORECASE)
_PARTS: Final = re.compile(r"[^a-z]+")
_SLOT: Final = "slotvalue"

KINDS: Final = frozenset({"network", "address", "version", "host", "mail"})
FIGURES: Final = KINDS - {"host", "mail"}
_PLACES: Final = frozenset({"network", "address"})
# What one has one of, by the kind of value; "a subnet" is one of several.
_ATTRIBUTES: Final = {
    "network": words("range cidr block prefix network netblock"),
    "address": words("address ip gateway netmask resolver"),
    "version": words("version release"),
    "host": words("hostname host domain endpoint fqdn server registry name address"),
    "mail": words("email e-mail mail address mailbox contact sender"),
}
_HAS: Final = words("has have gets bears uses use")
_USES: Final = words("uses use runs run")
_AT: Final = {
    "network": frozenset[tuple[str, str]](),
    "address": frozenset({("is", "at"), ("reachable", "at"), ("reached", "at"), ("resolves", "to"),
                     ("points", "to")}),
    "version": frozenset({("is", "at"), ("is", "on"), ("pinned", "to"), ("runs", "on")}),
    "host": frozenset({("is", "at"), ("reachable", "at"), ("reached", "at"), ("hosted", "at"),
                       ("hosted", "on"), ("points", "to"), ("is", "called"), ("is", "named")}),
    "mail": frozenset({("reachable", "at"), ("reached", "at"), ("reports", "to")}),
}  # fmt: skip
_SET: Final = words("to at on")
_PREPOSITIONS: Final = words("of for in on at to from with")
# What they stand for was told before, and not in the statement.
_PRONOUNS: Final = words(
    "we i they you he she who it this that these those there its his her their"
)
_OURS: Final = words("the our my your")
# "We use version 1.4.2 of it" names the one; of ranges and hosts a team has many.
_WE: Final = (words(""), words("we"))
_INDEFINITE: Final = words("a an one some any each every all both no several many most few")
# One of several is told of, or less or more than one value, or what is no claim.
_NOT_ALONE: Final = words(
    "also another second secondary third additional additionally other others either alternative"
    " alternatively fallback extra several multiple example examples e.g eg like such between among"
    " if unless when once may might could can should would was were had did been before after until"
    " since previous previously former formerly next temporarily sometimes usually not never least"
    " most up above below newer older later"
)
_MORE: Final = words("and or to")


class Literal(NamedTuple):
    """One such value of a text: its kind, the value in one notation, and its place."""

    kind: str
    value: str
    start: int
    end: int


@lru_cache(maxsize=4_096)
def read_literals(text: str) -> tuple[Literal, ...]:
    """All networks, addresses, versions, hosts and mail addresses of a text, in order."""
    found = []
    for match in _LITERAL.finditer(text):
        kind = match.lastgroup or ""
        raw = match.group()
        if kind == "address" and _VERSION_BEFORE.search(text[: match.start()]):
            kind = "version"
        value = _value(kind, raw)
        if kind == "address" and value is None and re.fullmatch(_OCTETS, raw):
            kind, value = "version", raw
        if value is not None:
            found.append(Literal(kind, value, *match.span()))
    return tuple(found)


def _value(kind: str, raw: str) -> str | None:
    if kind in _PLACES:
        return None if _TIME.fullmatch(raw) else _place(kind, raw)
    if kind == "version":
        return None if _DATE.fullmatch(raw) else raw.removeprefix("v")
    low = raw.lower()
    if kind == "host" and (low.rpartition(".")[2] in _FILES or not raw[0].isalnum()):
        return None
    return low


def _place(kind: str, raw: str) -> str | None:
    """An address or a network in one notation; None where it is neither."""
    try:
        found = ip_network(raw, strict=False) if kind == "network" else ip_address(raw)
    except ValueError:
        return None
    # "::" and the like are signs of a programming language rather than addresses.
    if isinstance(found, IPv6Address) and len(raw) < len("fd::1"):
        return None
    return str(found)


def other_literals(earlier: str, later: str, kinds: frozenset[str] = KINDS) -> bool:
    """Whether both hold such values, of these kinds, and not the same ones."""
    a, b = (
        {(each.kind, each.value) for each in read_literals(text) if each.kind in kinds}
        for text in (earlier, later)
    )
    return bool(a and b) and a != b


def one_literal(earlier: str, later: str) -> str | None:
    """What two statements differ in that say what their thing has one of: "network", "address",
    "version", "host", "mail"; None unless each holds one such value and the rest is the same."""
    a, b = read_literals(earlier), read_literals(later)
    if len(a) != 1 or len(b) != 1:
        return None
    one, other = a[0], b[0]
    if one.kind != other.kind or one.value == other.value:
        return None
    if _environments(one) != _environments(other):
        return None
    left, right = _without(earlier, one), _without(later, other)
    if [token.stem for token in left] != [token.stem for token in right]:
        return None
    return one.kind if _single(one.kind, left) and _single(one.kind, right) else None


def _environments(literal: Literal) -> set[str]:
    """Those that a host is named after: of each the thing may have one."""
    parts = _PARTS.split(literal.value) if literal.kind in ("host", "mail") else []
    return {ENVIRONMENTS[part] for part in parts if part in ENVIRONMENTS}


def _without(text: str, literal: Literal) -> list[Token]:
    return tokenize(f"{text[: literal.start]}{_SLOT}{text[literal.end :]}")


def _single(kind: str, tokens: Sequence[Token]) -> bool:
    """Whether what stands in the slot is the one value of what stands before it."""
    lows = [token.low for token in tokens]
    at = lows.index(_SLOT)
    before = lows[:at]
    if len(before) < 3 or not _INDEFINITE.isdisjoint(before) or not _NOT_ALONE.isdisjoint(lows):
        return False
    if not _MORE.isdisjoint(lows[at + 1 : at + 2]):
        return False
    attributes = _ATTRIBUTES[kind]
    if tuple(before[-2:]) in _AT[kind]:
        return before[0] not in _PRONOUNS
    if before[-1] == "is" or (before[-1] in _SET and before[-3:-1] == ["is", "set"]):
        return _of_thing(before[: before.index("is")], attributes)
    if kind == "version" and _product(tokens[:at]):
        return True
    return _has(kind, before, attributes)


def _of_thing(subject: Sequence[str], attributes: frozenset[str]) -> bool:
    """Whether a subject is one of these, and of something: "the range" alone could be of any."""
    told = len(subject) - (subject[0] in _OURS)
    return told > 1 and subject[0] not in _PRONOUNS and _head(subject) in attributes


def _head(subject: Sequence[str]) -> str:
    """The noun that a subject is about: "range" of "the range of the new network"."""
    end = next((i for i, low in enumerate(subject) if low in _PREPOSITIONS), len(subject))
    return subject[end - 1] if end else ""


def _product(before: Sequence[Token]) -> bool:
    """Whether a version follows the name of a product that a thing runs on or uses."""
    name, lead = before[-1], [token.low for token in before[:-1]]
    if not name.text[0].isupper() or len(lead) < 2 or lead[0] in _PRONOUNS:
        return False
    return lead[-1] in _USES or tuple(lead[-2:]) in {("runs", "on"), ("is", "on")}


def _has(kind: str, before: Sequence[str], attributes: frozenset[str]) -> bool:
    """Whether the words end in "has the range", "runs version", "has the private address"."""
    if before[-1] not in attributes or before[0] in _PRONOUNS - _WE[kind == "version"]:
        return False
    verbs = _HAS | _USES if kind == "version" else _HAS
    for back in (2, 3, 4):
        lead, between = before[:-back], before[-back:][1:-1]
        on = before[-back] == "on" and lead[-1:] in (["is"], ["runs"])
        if lead and (before[-back] in verbs or on):
            return not between or between[0] == "the"
    return False
