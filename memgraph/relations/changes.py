"""Compare a statement with a later one that something changed: "moved to", "cancelled"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from memgraph.model.enums import Relation
from memgraph.relations.sentence import ParsedSentence
from memgraph.relations.statement import (
    AGENTS,
    TIMES,
    RelationFinding,
    bare,
    content,
    is_past,
    key_of,
    shown,
)
from memgraph.text import lexicon
from memgraph.text.stem import stem
from memgraph.text.tokens import ComparedToken


def find_change(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare ``a`` with a later sentence ``b`` whose verb reports a change; None if it has none.

    Examples: "moved to", "cancelled".
    """
    if a.past or b.additive:
        return None
    verb = b.tokens[b.verb]
    if b.changed and b.past and verb.key == a.tokens[a.verb].key:
        if content(b.tokens) <= content(a.tokens):
            return RelationFinding(
                Relation.UPDATES, "the later statement says that it is over: used to", changed=True
            )
        return None
    if b.mode:
        return None
    if verb.key in lexicon.ENDS and (finding := _ended(a, b)) is not None:
        return finding
    return _moved(a, b) if verb.key in lexicon.MOVES or _went(a, b) else None


def _went(a: ParsedSentence, b: ParsedSentence) -> bool:
    """Return True for "the backups went from X to Y" of backups that "are stored in X"."""
    stays = a.passive and a.tokens[a.verb].key in lexicon.MOVES[stem("switch")] | {"send"}
    leaves = any(t.key == "from" for t in a.tokens)
    return b.past and b.tokens[b.verb].key == "go" and stays and not leaves


def _ended(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare with a later sentence such as "left X", "cancelled X" or "X was retired"."""
    if a.mode in ("not", "never", "forbid", "cannot", "neednot"):
        return None
    verb = b.tokens[b.verb]
    if not b.passive and not is_past(verb.text.lower()):
        return None
    subject = content(b.subject)
    if b.passive:
        ended, agent = subject, frozenset[str]()
    else:
        ended, agent = content(_object(b)) - {"i"}, subject
    earlier = content(a.tokens)
    if not ended or not _ends_it(a, b, ended):
        return None
    shared = ended & (earlier - agent)
    if not b.passive and not _head(_object(b)) & earlier:
        return None
    if b.passive:
        if a.subject and not _head(a.subject) & ended and content(a.subject) & ended:
            return None
        if not shared or not ended - lexicon.GENERIC <= earlier:
            return None
    elif not shared or len(shared) * 2 < len(ended):
        return None
    if not b.passive and not agent & content(a.subject) and not agent & {"we", "i", "they"}:
        return None
    predicate = " ".join(t.text for t in b.tokens[b.verb :])
    return RelationFinding(
        Relation.UPDATES, f"the later statement says that it ended: {predicate}", changed=True
    )


def _ends_it(a: ParsedSentence, b: ParsedSentence, ended: frozenset[str]) -> bool:
    """Return False if something else ended: of the same kind, of another owner, or a habit."""
    verb = b.tokens[b.verb].key
    if b.passive:
        # "Tickets are sold at the door" is a habit; "the house was sold" ends nothing about rooms.
        if verb in lexicon.HANDED_ON:
            side = a.subject if a.tokens[a.verb].key in lexicon.GOING_ON else a.tokens[a.verb :]
            holds = a.tokens[a.verb].key in lexicon.HAVING | lexicon.GOING_ON
            return (b.past or b.perfect) and holds and bool(content(side) & ended)
        return b.past or b.perfect or verb in lexicon.CANCELS
    ended_object = _object(b)
    # Not all of it ended: "we sold 140 tickets", "the borrowed one".
    if any(t.kind == "number" for t in ended_object) or "one" in (
        t.text.lower() for t in ended_object
    ):
        return False
    if not content(b.subject) & {"i", "we"}:
        return True
    return a.first or a.plural or (bool(content(a.subject)) and content(a.subject) <= ended)


def _head(tokens: Sequence[ComparedToken]) -> frozenset[str]:
    """Return the head noun of an object; a generic one is skipped: "job as a paramedic"."""
    head: ComparedToken | None = None
    for token in tokens:
        if token.kind != "prep":
            head = token
        elif head is not None and head.key not in lexicon.GENERIC:
            break
    return frozenset() if head is None else frozenset((key_of(head),))


def _object(b: ParsedSentence) -> tuple[ComparedToken, ...]:
    """Return the tokens after the verb, up to a later "and" or "for" or the end."""
    tokens = b.tokens[b.verb + 1 :]
    for at, token in enumerate(tokens):
        if token.key in ("and", "for") and at:
            return tokens[:at]
    return tokens


def _moved(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare with a later sentence such as "moved to X" or "switched from X to Y"."""
    verb = b.tokens[b.verb]
    topic, old, new = _split(b.tokens[b.verb + 1 :])
    subject = content(b.subject)
    earlier = content(a.tokens)
    value = [t for t in new if t.kind in _CURRENCIES] or bare(new)
    target = f"to {shown(value)}" if new else f"from {shown(bare(old))}"
    reason = f"the later statement says that it changed: {verb.text} {target}"
    if verb.key == stem("replace"):
        old, topic = (b.subject, topic) if b.passive else (topic, b.subject)
        subject = content(topic)
        reason = f"the later statement says that it was replaced: {shown(bare(old))}"
    changed = RelationFinding(Relation.UPDATES, reason, changed=True)
    before = content(old)
    thing = (subject | content(topic)) - lexicon.GENERIC - before
    if not thing and subject == content(a.subject):
        thing = subject
    if before:
        if not before <= earlier or not (new or verb.key == stem("transfer")):
            return None
        if not before & content(a.tokens[a.verb :]) and not content(a.subject) <= before:
            return None
        others = content(b.tokens) - before - content(new) - {verb.key}
        if new and {t.key for t in b.subject if t.kind == "name"} - earlier - before:
            return None
        if others & earlier - AGENTS - {"i"}:
            return changed
        if b.passive and verb.key == stem("replace") and content(a.subject) <= before:
            return changed
        tool = a.tokens[a.verb].key in lexicon.MOVES.get(verb.key, frozenset()) | {stem("use")}
        return changed if tool and any(t.kind == "name" for t in old) else None
    if charged := _charged(a, topic, new):
        thing -= _PRICES
    if not thing - AGENTS and content(topic) == content(a.subject) and len(a.subject) == 1:
        thing = content(topic)
    if topic and content(topic) & earlier:
        thing -= subject - earlier
    if thing and thing <= content(b.subject) and _same_product(a, b, new):
        return changed
    if not new or not thing or not thing <= earlier or content(new) <= earlier:
        return None
    previous = a.tokens[a.verb].key
    if a.mode in ("may", "can") or previous not in lexicon.MOVES.get(verb.key, ()):
        return None
    # "We extend the contract with X" does not affect other contracts.
    if (
        topic
        and not charged
        and thing <= AGENTS
        and not content(topic) & earlier
        and any(t.is_value for t in b.tokens)
    ):
        return None
    # The later sentence says that the subject of the earlier one was rescheduled.
    if len(thing) > 1 and thing <= content(a.subject) and any(t.kind in TIMES for t in new):
        return changed if any(t.kind in TIMES for t in a.tokens[a.verb :]) else None
    if not content(a.subject) - AGENTS - {"i"} <= thing | subject | content(topic):
        return None
    values = [t.kind for t in new if t.is_value]
    rest = [t for t in a.tokens[a.verb + 1 :] if key_of(t) not in thing and t.kind != "prep"]
    complement = previous == "be" and not values and not _linked(a)
    if verb.key != stem("rename") and (not rest or complement):
        return None
    if values and not any(t.kind == "name" for t in new):
        kinds = {t.kind for t in rest if t.is_value}
        if not (kinds & set(values) or (kinds & TIMES and set(values) & TIMES)):
            return None
    return changed


def _same_product(a: ParsedSentence, b: ParsedSentence, new: Sequence[ComparedToken]) -> bool:
    """Return True where "we moved to PostgreSQL 17" and ``a`` says "our database is PostgreSQL 15".

    What is one of several may stay as it was: "our old laptops", "the test server".
    """
    ours = (a.plural and b.tokens[0].key == "we") or (a.first and b.first)
    if [t.kind for t in new] != ["name", "version"] or not ours or len(b.subject) != 1:
        return False
    owned = [t.text.lower() for t in a.subject if t.text.lower() != "my"]
    if len(owned) != 1 or owned[0].endswith("s") or a.tokens[a.verb].key not in _PRODUCT_VERBS:
        return False
    return any(
        name.key == new[0].key and t.kind == "version" and t.key != new[1].key
        for name, t in pairwise(a.tokens[a.verb :])
    )


_PRODUCT_VERBS: Final = frozenset({"be", "run", "host"})


def _charged(
    a: ParsedSentence, topic: Sequence[ComparedToken], new: Sequence[ComparedToken]
) -> bool:
    """Return True where "the price" that rises is the one that "we charge" per head or hour."""
    if a.tokens[a.verb].key != stem("charge") or not content(topic) <= _PRICES:
        return False
    per_head = content([t for t in a.tokens[a.verb + 1 :] if not t.is_value])
    return per_head == content([t for t in new if not t.is_value])


_CURRENCIES: Final = frozenset({"eur", "usd", "gbp", "chf", "crowns"})
_PRICES: Final = frozenset({stem("price"), stem("rate"), stem("fee")})


def _linked(a: ParsedSentence) -> bool:
    """Return True if a preposition or a name follows the verb: "is on GitLab"."""
    return a.verb + 1 < len(a.tokens) and a.tokens[a.verb + 1].kind in ("prep", "name")


def _split(
    tokens: Sequence[ComparedToken],
) -> tuple[tuple[ComparedToken, ...], tuple[ComparedToken, ...], tuple[ComparedToken, ...]]:
    """Split tokens into the object, the part after "from", and the part after "to" or "by"."""
    parts: dict[str, list[ComparedToken]] = {"object": [], "from": [], "to": []}
    place = "object"
    for token in tokens:
        if token.kind == "prep" and token.key == "from":
            place = "from"
        elif token.kind == "prep" and token.key in (
            "to",
            "into",
            "by",
            "with",
            "in",
            "on",
            "until",
        ):
            if place == "to" and token.key in ("in", "on", "with", "by"):
                place = "rest"
                parts.setdefault(place, [])
            elif place in ("object", "from"):
                place = "to"
        elif token.key in ("and", "for", "since", "after", "as"):
            place = "rest"
            parts.setdefault(place, [])
        else:
            parts[place].append(token)
    return tuple(parts["object"]), tuple(parts["from"]), tuple(parts["to"])


_OWN: Final = r"(?:my|his|her|their|the|a|our)"
_PET: Final = r"(?:dog|cat|puppy|kitten|rabbit|hamster|parrot|pony|horse)"
_FAMILIES: Final = {
    family: tuple((name, re.compile(pattern)) for name, pattern in states)
    for family, states in {
        "relationship": (
            ("single", r"\bsingle\b(?! \w)|\bnot (?:seeing|dating) (?:anyone|anybody)\b"),
            ("together", r"\bdating\b|\bin a relationship\b|\bgoing out with\b|\bseeing someone\b"),
            ("engaged", r"\bengaged to\b|\b(?:am|is|are|got) engaged\b|\bfianc[ée]"),
            ("married", r"\b(?:got|is|am|are) married\b|\bmarried (?!couple)|\btied the knot\b"),
            ("apart", r"\bbroke up\b|\bsplit up\b|\bseparated\b|\bdivorced?\b|\bgot divorced\b"
             r"|\bcalled off (?:the|their|our) (?:wedding|engagement)\b"),
        ),
        "smoking": (
            ("smokes", r"(?<!not )\bsmokes?\b|\ba (?:heavy |chain )?smoker\b"),
            ("does not smoke", r"\b(?:stopped|quit|gave up|given up) smoking\b|\bnon-?smoker\b"
             r"|\bnot smoke\b|\bsmoke-free\b|\blast cigarette\b"),
        ),
        "children": (
            ("none", r"\b(?:no|not have|any) (?:any )?(?:children|kids)\b|\bchildless\b"),
            ("expecting", r"\bpregnant\b|\bexpecting (?:twins|(?:a|their|our|her) (?:\w+ "
             r")?(?:baby|child|son|daughter))\b"),
            ("some", rf"\bgave birth\b|\bhad (?:{_OWN} (?:baby|first child|daughter|son)|twins)\b"
             r"|\b(?:baby|son|daughter|boy|girl|twins) (?:was born|were born|arrived|is here"
             r"|came home)\b|\bhas (?:a|two) (?:son|daughter)s?\b"),
        ),
        "driving": (
            ("cannot", r"\b(?:can not|not able to|not) drive\b(?! \w)|\bno driving licen[cs]e\b"),
            ("can", r"\b(?:passed|got|have|has) (?:\w+ )?driv(?:ing|er's) (?:test|licen[cs]e)\b"),
        ),
        "diet": (
            ("no meat", r"\b(?:am|is|are)(?: an?)?(?: strict)? (?:vegan|vegetarian)\b"),
            ("meat", r"\b(?:eat|eats|eating) (?:\w+ and )?(?:meat|fish|eggs|chicken|dairy|cheese)\b"
             r"(?: and \w+)? (?:again|now)\b"),
        ),
        "pets": (
            ("none", rf"\bno pets\b|\bnot have (?:a|any) (?:pets?|{_PET})\b"),
            ("some", rf"\b(?:adopted|got|bought|rescued) (?:a|an|two) (?:\w+ )?{_PET}s?\b"),
        ),
        "home": (
            ("with parents", rf"\bliv(?:e|es|ing) with {_OWN} (?:parents|mum|mother|father)\b"),
            ("rented", r"\b(?:rent|rents|renting) (?:a|an|our|my)\b"),
            ("own", rf"\bbought {_OWN} (?:\w+ )?(?:house|flat|apartment|place|cottage)\b"
             rf"|\b(?:moved into|got|found|has|have) {_OWN} own (?:flat|place|apartment|home)\b"),
        ),
        "leave": (
            ("away", r"\bon (?:\w+ )?(?:leave|holiday|vacation|sabbatical)\b|\boff sick\b"),
            ("back", r"\bback at\b|\b(?:returned|came back) (?:from|to work)\b"
             r"|\bback (?:in|from|to) (?:work|the office|\w+ leave|holiday|vacation)\b"),
        ),
        "delivery": (
            ("under way", r"\bin transit\b|\bon (?:its|the|their) way\b|\b(?:was|were|is|has been) "
             r"shipped\b|\bout for delivery\b"),
            ("there", r"\b(?:was|were|has been|got) delivered\b|\b(?:has |have )?arrived\b"),
        ),
        "release": (
            ("in test", r"\bin (?:\w+ )?(?:alpha|beta|preview)\b"),
            ("released", r"\bgenerally available\b|\b(?:was|has been|is) released\b"
             r"|\b(?:out of|left) (?:alpha|beta|preview)\b"),
        ),
        "payment": (
            ("unpaid", r"\bunpaid\b|\b(?:still |is )open\b|\boutstanding\b|\boverdue\b"
             r"|\bnot (?:been )?paid\b"),
            ("paid", r"\b(?:was|were|has been|have been|is) (?:\w+ly )?(?:paid|settled)\b"),
        ),
        "order": (
            ("broken", r"\bbroken\b|\bout of order\b|\bis down\b|\bdefective\b|\bkaputt\b"
             r"|\bnot work(?:ing)?\b|\bin (?:the garage |for )?(?:repair|for repair)\b"),
            ("working", r"\b(?:works?|working|running|up|läuft) (?:again|wieder)\b|\bis back up\b"
             r"|\b(?:was|has been|is) (?:repaired|fixed|mended)\b"),
        ),
    }.items()
}  # fmt: skip


_FAMILY_WORDS: Final = {
    "relationship": "single dating engaged married divorced",
    "smoking": "smoke smoker smoking",
    "children": "children pregnant",
    "pets": "pets",
}


def state_words(text: str) -> tuple[str, ...]:
    """Return words that express other states of the same kind; empty if the text has no state.

    Args:
        text: a sentence in lower case, with contractions written out.
    """
    return tuple(
        word
        for family, words in _FAMILY_WORDS.items()
        if any(pattern.search(text) for _, pattern in _FAMILIES[family])
        for word in words.split()
    )


def state_change(earlier: str, later: str) -> tuple[str, str] | None:
    """Return the earlier and the later state if a person cannot be in both at once, else None.

    Args:
        earlier, later: sentences in lower case, with contractions written out.
    """
    for states in _FAMILIES.values():
        before = [name for name, pattern in states if pattern.search(earlier)]
        after = [name for name, pattern in states if pattern.search(later)]
        if len(before) == 1 and after and before[0] not in after:
            return before[0], after[-1]
    return None
