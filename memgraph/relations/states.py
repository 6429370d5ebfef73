"""States of a life that exclude one another: single and married, smoking and not."""

from __future__ import annotations

import re
from typing import Final

_OWN: Final = r"(?:my|his|her|their|the|a|our)"
_PET: Final = r"(?:dog|cat|puppy|kitten|rabbit|hamster|parrot|pony|horse)"
_FAMILIES: Final = {
    family: tuple((name, re.compile(pattern)) for name, pattern in states)
    for family, states in {
        "relationship": (
            ("single", r"\bsingle\b(?! \w)|\bnot (?:seeing|dating) (?:anyone|anybody)\b"),
            ("together", r"\bdating\b|\bin a relationship\b|\bgoing out with\b|\bseeing someone\b"),
            ("engaged", r"\bengaged to\b|\bgot engaged\b|\bfianc[ée]"),
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
    """Return words by which other states of the same kind are told; of none, nothing.

    Args:
        text: a sentence in lower case, contractions written out.
    """
    return tuple(
        word
        for family, words in _FAMILY_WORDS.items()
        if any(pattern.search(text) for _, pattern in _FAMILIES[family])
        for word in words.split()
    )


def state_change(earlier: str, later: str) -> tuple[str, str] | None:
    """Return the two states that one person cannot be in at once, or None.

    Args:
        earlier, later: sentences in lower case, contractions written out.
    """
    for states in _FAMILIES.values():
        before = [name for name, pattern in states if pattern.search(earlier)]
        after = [name for name, pattern in states if pattern.search(later)]
        if len(before) == 1 and after and before[0] not in after:
            return before[0], after[-1]
    return None
