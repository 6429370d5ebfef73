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
        "diet": (
            ("vegan", r"\bvegan\b"),
            ("vegetarian", r"\bvegetarian\b|\b(?:stopped|not|quit) eat(?:ing)? meat\b"),
            ("eats animals", r"\beat(?:s|ing)? (?:meat|fish|chicken|beef|pork|eggs|cheese)\b"),
        ),
        "smoking": (
            ("smokes", r"(?<!not )\bsmokes?\b|\ba (?:heavy |chain )?smoker\b"),
            ("does not smoke", r"\b(?:stopped|quit|gave up|given up) smoking\b|\bnon-?smoker\b"
             r"|\bnot smoke\b|\bsmoke-free\b|\blast cigarette\b"),
        ),
        "drinking": (
            ("drinks", r"\bdrinks? (?:\w+ )?(?:beer|wine|alcohol|whisky)\b"),
            ("does not drink", r"\bteetotal\b|\bsober\b|\bnot drink (?:alcohol|any|$)"
             r"|\b(?:stopped|quit|gave up|given up) (?:drinking|alcohol|beer|wine)\b"),
        ),
        "driving": (
            ("does not drive", r"\b(?:can|does|do) not drive\b|\blearning to drive\b"
             r"|\b(?:no|not have an?) driv\w+'?s? licen[cs]e\b|\bdriving lessons\b"),
            ("drives", rf"\bpassed {_OWN} driving test\b|\bgot {_OWN} driv\w+'?s? licen[cs]e\b"),
        ),
        "siblings": (
            ("none", r"\b(?:no|any) (?:siblings|brothers or sisters|brothers|sisters)\b"
             r"|\bonly child\b"),
            ("some", r"\b(?:have|has|got) (?:an?|two|three|four) (?:\w+ )?(?:brother|sister)s?\b"),
        ),
        "children": (
            ("none", r"\b(?:no|not have|any) (?:any )?(?:children|kids)\b|\bchildless\b"),
            ("expecting", r"\bpregnant\b|\bexpecting (?:a|twins|their|our|her)\b"),
            ("some", rf"\bgave birth\b|\bhad (?:{_OWN} (?:baby|first child|daughter|son)|twins)\b"
             r"|\bbaby (?:was born|arrived|is here)\b|\bhas (?:a|two) (?:son|daughter)s?\b"),
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
        "work": (
            ("without", r"\bunemployed\b|\blooking for (?:a |some |new )*(?:job|work)\b"
             r"|\bbetween jobs\b|\bout of work\b|\bjob[- ]hunting\b"),
            ("employed", r"\b(?:got|found|has|started|starting) (?:a|the|her|his|my) (?:new )?job\b"
             r"|\bworks? (?:at|for|as)\b|\bhired\b|\bstarted (?:working|as|at)\b"),
            ("retired", r"\bretired\b"),
        ),
        "study": (
            ("studies", r"\bstud(?:ies|ying)\b|\b(?:is|am) an? (?:\w+ )?student\b"
             r"|\b(?:final|last|first|second|third) year (?:at|of) (?:school|university)\b"),
            ("finished", rf"\bgraduated\b|\bfinished {_OWN} (?:degree|studies|phd|master)"
             rf"|\bgot {_OWN} (?:degree|diploma|phd|doctorate)\b|\bdropped out\b"),
        ),
        "leave": (
            ("away", r"\bon (?:\w+ )?(?:leave|holiday|vacation|sabbatical)\b|\boff sick\b"),
            ("back", r"\bback at\b|\breturned (?:from|to work)\b"
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
        "health": (
            ("ill", r"\bbedridden\b|\b(?:has|have|with) (?:the )?flu\b|\bin (?:the )?hospital\b"
             r"|\bin plaster\b|\bon crutches\b|\bbroke (?:his|her|my) \w+\b|\bis (?:ill|sick)\b"),
            ("well", r"\brecovered\b|\bdischarged\b|\bcast (?:came|is|was|off)\b|\bgot over\b"
             r"|\b(?:fit|well|healthy) again\b|\bback on (?:his|her|my) feet\b"
             r"|\bfeels? (?:great|fine|well)\b"),
        ),
    }.items()
}  # fmt: skip


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
