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
        "work": (
            ("without", r"\bunemployed\b|\blooking for (?:a |some |new )*(?:job|work)\b"
             r"|\bbetween jobs\b|\bout of work\b|\bjob[- ]hunting\b"),
            ("employed", r"\b(?:got|found|has|starts|started|starting) (?:a|the|her|his|my) "
             r"(?:new )?job\b"
             r"|\bworks? (?:at|for|as)\b|\bhired\b|\bstart(?:ed|s) (?:working|as|at)\b"),
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


# What is still to be done, and what is done; what is for some, and what is for all.
_PENDING: Final = re.compile(
    r"\bstill (?:has|have|needs?|must|to be)\b|\b(?:look|search|hop)ing for\b|\bhas to \w+"
    r"|\bvacant\b"
    r"|\bnot (?:yet )?been\b|\bneeds? (?:to be|a|an|\w+ing)\b|\byet to be\b|\bunfilled\b|\bwanted\b"
    r"|\bis pending\b|\bwaiting for\b|\b(?:has|have) not \w+ed\b"
)
_DONE: Final = re.compile(
    r"\b(?:was|were|is|are|has been|have been) (?:now |finally )?(?:\w+ed|found|built|rebuilt"
    r"|sold|done|hired)\b"
    r"|\bwent through\b|\b(?:we|i|they)(?: have)? (?:finally )?(?:found|hired|got|signed|chose"
    r"|bought)\b"
    r"|\b(?:started|starts|joined|took over|begins) (?:\w+ )?as\b|\bpassed\b|\b\w+ed (?:on|this"
    r"|last)\b"
)
_EXCLUSIVE: Final = re.compile(
    r"^only \w+|\binvitation[- ]only\b|\bby invitation only\b|\bmembers[- ]only\b|\bfor \w+ only\b"
    r"|\brestricted to\b|\breserved for\b|\bclosed to the public\b|\bprivate\b"
)
_OPEN_TO_ALL: Final = re.compile(
    r"\bany(?:one|body)\b|\bevery(?:one|body)\b|\bpublic\b|\bopen to all\b|\bwithout (?:an "
    r")?invitation\b"
)
_WHOLE: Final = re.compile(r"\b(?:all|every|everyone|everybody|only|entirely|each|exclusively)\b")
_PART: Final = re.compile(
    r"^(?:half|some|a third|a quarter|part|most|one|two|three|several|many|a few|\d+ ?(?:%"
    r"|percent)) "
    r"(?:of )(?:the |our |my |its |them )?(\w+(?: \w+)?)"
)
_FREE: Final = re.compile(
    r"\b(?:charges? (?:no|nothing)|(?:is|are) free(?! to)\b|free of charge|costs? nothing|for free"
    r"|no (?:admission|fee|charge|entry fee|cost))\b"
)
_PRICED: Final = re.compile(r"\b(?:costs?|pays?|charges?|fee|price|ticket)\b.{0,40}(?:\d|[€$£])")
_LACK: Final = re.compile(
    r"\b(?:has|have|is|are) (?:got )?(?:no|without(?: an?)?) (\w+(?: \w+)?)(?=[.,!]?$| in\b)"
    r"|\bnot (?:have|own) (?:an? |any )?(\w+)(?=[.,!]?$)"
)
_THEIRS: Final = re.compile(
    r"\bbelongs? to\b|\brent(?:s|ing|ed)?\b|\bowned by\b|\bleas(?:e|ed|ing)\b"
)
_OURS: Final = re.compile(r"\b(?:is|are) (?:ours|mine) now\b|\bnow (?:ours|mine)\b")
_NEVER_DOWN: Final = re.compile(r"\bnever (?:been down|had an? outage|failed|crashed|been late)\b")
_DOWN: Final = re.compile(
    r"\b(?:was|were|went) (?:\w+ )?(?:down|offline|late)\b|\bcrashed\b|\bfailed\b|\boutage\b"
)


def _both(
    first: re.Pattern[str], second: re.Pattern[str], a: str, b: str
) -> tuple[str, str] | None:
    one = first.search(a)
    other = second.search(b) if one else None
    return (one.group(), other.group()) if one and other else None


def settled(earlier: str, later: str) -> tuple[str, str] | None:
    """Return what is still to be done in one text and done in the other, or None."""
    return None if _PENDING.search(later) else _both(_PENDING, _DONE, earlier, later)


def opened(earlier: str, later: str) -> tuple[str, str] | None:
    """Return the words of "for some only" and of "for everyone", or None."""
    return _both(_EXCLUSIVE, _OPEN_TO_ALL, earlier, later) or _both(
        _OPEN_TO_ALL, _EXCLUSIVE, earlier, later
    )


def parted(earlier: str, later: str) -> tuple[str, str] | None:
    """Return the words of "all" and what a part is said of, or None."""
    whole, part = _WHOLE.search(earlier), _PART.search(later)
    return (whole.group(), part[1]) if whole and part and not _PART.search(earlier) else None


def provided(earlier: str, later: str) -> tuple[str, str] | None:
    """Return what is missing in one text and there in the other, or None."""
    if found := _both(_FREE, _PRICED, earlier, later) or _both(_NEVER_DOWN, _DOWN, earlier, later):
        return found
    if found := _both(_THEIRS, _OURS, earlier, later):
        return found
    lack = _LACK.search(earlier)
    if lack is None:
        return None
    there = re.search(
        rf"\b(?:(?:has|have|got|bought|built|adopted|installed|fitted) (?:\w+ )?(?:an?|two|our"
        rf"|its|his|her|my) "
        rf"(?:\w+ )?{re.escape(lack[1] or lack[2])}\b"
        rf"|{re.escape(lack[1] or lack[2])} (?:was|were|has been|have been) (?:fitted|installed"
        rf"|built|put in|added))",
        later,
    )
    return (lack.group(), there.group()) if there else None
