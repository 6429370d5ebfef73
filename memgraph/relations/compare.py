"""Compare two statements by a few exact rules. Pure: no IO, no model, no clock."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from memgraph.model.enums import Relation
from memgraph.relations.changes import find_change, state_change, state_words
from memgraph.relations.sentence import ParsedSentence, clauses, read
from memgraph.relations.statement import (
    AGENTS,
    TIMES,
    RelationFinding,
    Statement,
    bare,
    content,
    is_past,
    key_of,
    shown,
)
from memgraph.text import lexicon
from memgraph.text.lexicon import MONTH_NAMES, WEEKDAY_NAMES
from memgraph.text.stem import stem
from memgraph.text.tokens import ComparedToken


def compare(earlier: Statement, later: Statement) -> RelationFinding | None:
    """Return how ``later`` relates to ``earlier``, or None if the rules are not sure.

    Two statements with different values for one attribute are CONTRADICTS with ``changed`` False;
    the caller, which knows the authors, decides whether one may replace the other.
    """
    if earlier.speaker == later.speaker and _words(earlier.text) == _words(later.text):
        return RelationFinding(Relation.DUPLICATE, "the same words")
    if not (earlier.is_one_claim and later.is_one_claim):
        return None
    a, b = read(earlier.text, earlier.speaker), read(later.text, later.speaker)
    if earlier.speaker != later.speaker and (a.plural or b.plural):
        return None
    if a.keys & b.keys and (current := _as_of_now(earlier.text, later.text)):
        finding = compare(earlier, replace(later, text=current))
        if finding is not None and finding.changed:
            return finding
    return _compared(a, b) or _in_clauses(earlier, later)


_MONTH: Final = rf"(?:{'|'.join(MONTH_NAMES['en'])})"
_WEEKDAY: Final = rf"(?:{'|'.join(WEEKDAY_NAMES['en'])})"
_DAY: Final = r"\d\d?(?:st|nd|rd|th)?"
_START: Final = (
    r"(?:(?:from|since|as of|as from|(?:starting|beginning|effective)(?: from| in| on)?) "
    rf"(?:(?:the )?{_DAY}(?: of)? {_MONTH}|{_MONTH}(?: {_DAY})?|{_WEEKDAY}|today|tonight|tomorrow"
    r"|(?:this|(?:the )?(?:next|coming)) "
    rf"(?:week|month|year|quarter|season|term|release|{_WEEKDAY})"
    r"|\d{4}-\d\d-\d\d|20\d\d|Q[1-4])(?:,? 20\d\d)?(?: on(?:wards?)?)?"
    r"|since (?:the|our|my|last) \w+)"
)
_STARTS: Final = re.compile(rf"^{_START}(?P<comma>,? )|,? {_START}(?=\W*$)", re.IGNORECASE)
_INSTEAD: Final = re.compile(
    r",? (?:and )?(?:not|instead of|rather than) (?P<old>\w+(?: \w+)?)(?=\W*$)", re.IGNORECASE
)


def _as_of_now(earlier: str, later: str) -> str:
    """Return ``later`` with "now" for "…, not X", "no X but Y" and "from May"; "": none."""
    if current := _without_former(earlier, later):
        return current
    instead = _INSTEAD.search(later)
    if instead and instead["old"].lower() in earlier.lower():
        return f"{later[: instead.start()]} now"
    current = _without_start(later)
    return "" if current and _without_start(earlier) else current


_FORMER: Final = re.compile(
    r" (?:no longer|(?P<do>(?:do|does|is|are))(?:n't| not)) (?P<former>[^,;]+?)(?: any ?more"
    r"| any longer)?,? but (?:now )?(?P<new>(?P<link>at|from|in|on|to|with|by|for)? ?[^,;]+?)\W*$"
)


def _without_former(earlier: str, later: str) -> str:
    """Return "it starts at 8 now" for "it no longer starts at 7 but at 8"; "": it is not like that,
    or ``earlier`` does not state that it starts at 7.
    """
    match = _FORMER.search(later.replace("’", "'"))
    if match is None:
        return ""
    start = f"{later[: match.start()]} {match['do'] or ''} "
    if not read(f"{start}{match['former']}").keys <= read(earlier).keys:
        return ""
    verb, _, _ = match["former"].partition(" ")
    kept = "" if start.rstrip().endswith((" is", " are")) else f"{verb} "
    if link := match["link"]:
        kept = match["former"][: match["former"].rfind(f" {link} ") + 1]
    return f"{start}{kept}{match['new']} now" if kept or not link else ""


def _without_start(text: str) -> str:
    """Return "the rent is 900 now" for "From May the rent is 900"; "" without a start date.

    The date must be at the beginning or at the end of the text: in "the letter from May is lost"
    it belongs to a noun.
    """
    match = _STARTS.search(text)
    if match is None:
        return ""
    if match["comma"]:
        return f"{text[match.end() :].rstrip('.! ')} now"
    return f"{text[: match.start()]} now{text[match.end() :]}"


def _in_clauses(earlier: Statement, later: Statement) -> RelationFinding | None:
    """Compare the clauses of compound sentences; one equal clause does not make a duplicate."""
    earlier_clauses, later_clauses = (
        clauses(statement.text, statement.speaker) for statement in (earlier, later)
    )
    if not earlier_clauses and not later_clauses:
        return None
    for a in earlier_clauses or (read(earlier.text, earlier.speaker),):
        for b in later_clauses or (read(later.text, later.speaker),):
            finding = _compared(a, b)
            if finding is not None and finding.relation is not Relation.DUPLICATE:
                return finding
    return None


def _compared(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    if a.unsure or b.unsure or not a.keys & b.keys:
        return None
    # Two labelled lines such as "Due date: 1 May" may belong to different things.
    if ": " in a.text and ": " in b.text:
        return None
    a, b = _with_verb(a, b), _as_count(_with_verb(b, a), a)
    if a.verb < 1 or b.verb < 1:
        return None
    if a.deictic or b.deictic:
        return find_change(a, b) if {a.deictic, b.deictic} <= {"he", "she"} else None
    if a.additive or b.additive or _one_of_several(a) or _one_of_several(b):
        return find_change(a, b)
    return (
        _aligned(a, b)
        or _aligned(_role_first(a), _role_first(b, bare=b.changed))
        or _reordered(a, b)
        or find_change(a, b)
        or _lived(a, b)
        or _reversed(a, b)
        or _opposite_state(a, b)
    )


def _one_of_several(a: ParsedSentence) -> bool:
    """Return True if the subject is one of several: "some keys", "one of my brothers"."""
    return a.text.startswith(("some ", "one of ", "several ", "many ", "a few ", "most "))


def search_words(statement: Statement) -> tuple[str, ...]:
    """Return the words for subject and attribute: names in the subject first, values last."""
    sentence = read(statement.text, statement.speaker)
    subject = [t for t in sentence.subject if t.kind != "prep"]
    rest = [t for t in sentence.tokens[max(sentence.verb, 0) :] if t.kind != "prep"]
    ordered = [t for t in subject if t.kind == "name"]
    ordered += [t for t in subject if t.kind != "name"]
    ordered += [t for t in rest if not t.is_value and t.key not in ("be", "have")]
    ordered += [t for t in rest if t.is_value]
    words = [t.text.lower().removesuffix("'s") for t in ordered]
    if words and (sentence.first or sentence.plural):
        # "I'm single" and "I got married" share no word but "I".
        words += state_words(sentence.text)
    return tuple(dict.fromkeys(words))


def _with_verb(a: ParsedSentence, b: ParsedSentence) -> ParsedSentence:
    """Return ``a``; if its verb was not recognised, look for the verb of ``b`` in it."""
    if a.verb >= 1 or b.verb < 1:
        return a
    key = b.tokens[b.verb].key
    places = [at for at, token in enumerate(a.tokens) if at and token.key == key]
    return replace(a, verb=places[0]) if places else a


def _as_count(b: ParsedSentence, a: ParsedSentence) -> ParsedSentence:
    """Return "we have 15 employees" for "we are 15 employees now", where ``a`` counts them."""
    if not (b.changed and b.verb == 1 and b.tokens[0].key == "we" and b.tokens[1].key == "be"):
        return b
    if a.verb != 1 or a.tokens[0].key != "we" or a.tokens[1].key not in ("have", stem("employ")):
        return b
    counted = [t.kind for t in b.tokens[2:4]] == ["number", "word"]
    return replace(b, tokens=(b.tokens[0], a.tokens[1], *b.tokens[2:])) if counted else b


def _role_first(a: ParsedSentence, *, bare: bool = False) -> ParsedSentence:
    """Return "our treasurer is Ann" for "Ann is our treasurer", ``bare`` for "Ann is treasurer"."""
    if a.verb < 1 or a.mode or a.past or a.tokens[a.verb].key != "be":
        return a
    name, role = a.subject, a.tokens[a.verb + 1 :]
    definite = _DEFINITE_ROLE.search(a.text) or (bare and not _ONE_OF_A_KIND.search(a.text))
    if not role or not definite or role[0].kind == "prep":
        return a
    # An acronym such as "the CEO" has capitals but is not a name.
    if any(t.kind == "name" and not t.text.isupper() for t in role[:1]):
        return a
    head = next((at for at, t in enumerate(role) if t.kind == "prep"), len(role))
    if any(not t.text[0].isupper() or t.is_value for t in name) or role[head - 1].kind not in (
        "word",
        "name",
    ):
        return a
    superlative = any(t.text.endswith("est") for t in role[: head - 1])
    if any(t.is_value for t in role) or not (
        superlative or _AGENT_NOUN.search(role[head - 1].text.lower())
    ):
        return a
    names = [token._replace(kind="name") for token in name]
    return replace(a, tokens=(*role, a.tokens[a.verb], *names), verb=len(role))


_DEFINITE_ROLE: Final = re.compile(r"\b(?:is|are)(?: (?:now|still|currently))? (?:the|our|my) ")
_AGENT_NOUN: Final = re.compile(
    r"(?:er|or|ist|ant|ian|man|woman|person|chief|head|lead|chair|host|boss|president|contact"
    r"|captain|secretary|coach|c[a-z]o)$"
)


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


# -- sentences of the same structure -----------------------------------------------------------

_CONFLICTS: Final = {
    frozenset(pair.split())
    for pair in (
        "may forbid", "must neednot", "must forbid", "can cannot", "may cannot", "can forbid",
        "should shouldnot", "must cannot", "should forbid", "must shouldnot", "always never",
        "always not", "plain not", "plain never", "plain cannot", "plain neednot",
        "may not", "can not", "must not", "can never", "may never",
    )
}  # fmt: skip
_IN_WORDS: Final = {
    "": "it is so", "not": "not", "may": "may", "forbid": "must not", "must": "must",
    "neednot": "need not", "can": "can", "cannot": "cannot", "should": "should",
    "shouldnot": "should not", "always": "always", "never": "never",
}  # fmt: skip


def _aligned(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare sentences that differ only in one place or in their mode."""
    left, right = a.tokens, b.tokens
    edits = _edits(left, right)
    if not edits:
        return _same_words(a, b)
    if (
        _prefers(a)
        and _prefers(b) == _prefers(a)[::-1]
        and content(a.subject) == content(b.subject)
    ):
        return _finding(b, "the other one is preferred")
    if a.past or (b.past and a.mode not in ("not", "never")):
        return None
    if a.mode != b.mode and {a.mode, b.mode} != {"", "always"}:
        return _denied(a, b)
    if len(edits) == 1:
        start, end, other, other_end = edits[0]
        return _slot(a, b, (start, end), (other, other_end))
    return None


def _prefers(a: ParsedSentence) -> tuple[frozenset[str], ...]:
    """Return what is preferred and what it is preferred to; () for other sentences."""
    rest = a.tokens[a.verb + 1 :]
    over = next((at for at, t in enumerate(rest) if at and t.key in ("over", "to")), 0)
    if a.tokens[a.verb].key != stem("prefer") or not over or a.mode:
        return ()
    return content(rest[:over]), content(rest[over + 1 :])


def _edits(
    left: Sequence[ComparedToken], right: Sequence[ComparedToken]
) -> list[tuple[int, int, int, int]]:
    """Return where two sequences differ; prepositions of place and time count as equal.

    Differences before and after a preposition are joined into one: "drawer under the sink".
    """
    left_keys, right_keys = [key_of(token) for token in left], [key_of(token) for token in right]
    edits: list[tuple[int, int, int, int]] = []
    for tag, start, end, other_start, other_end in SequenceMatcher(
        None, left_keys, right_keys, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        between = left[edits[-1][1] : start] if edits else ()
        if edits and all(t.kind == "prep" and t.key != "to" for t in between):
            start, other_start = edits[-1][0], edits[-1][2]
            edits.pop()
        edits.append((start, end, other_start, other_end))
    return edits


def _same_words(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    if a.mode == b.mode and a.past == b.past:
        if a.left_out != b.left_out:
            return None
        return RelationFinding(Relation.DUPLICATE, "the same in other words")
    if a.past or b.past:
        return None
    return _modes(a, b)


def _modes(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    if _vague(a):
        return None
    if frozenset((a.mode or "plain", b.mode or "plain")) not in _CONFLICTS:
        return None
    reason = f"one states what the other denies: {_IN_WORDS[a.mode]} / {_IN_WORDS[b.mode]}"
    if "forbid" in (a.mode, b.mode):
        reason = (
            f"one allows what the other forbids: {_IN_WORDS[a.mode]} / {_IN_WORDS[b.mode]}"
            if "may" in (a.mode, b.mode) or "can" in (a.mode, b.mode)
            else reason
        )
    return _finding(b, reason)


def _finding(b: ParsedSentence, reason: str) -> RelationFinding:
    if b.changed or b.tokens[b.verb].key in lexicon.MOVES:
        return RelationFinding(Relation.UPDATES, reason, changed=True)
    return RelationFinding(Relation.CONTRADICTS, reason)


_NEGATIVE: Final = frozenset({"not", "never", "forbid", "cannot", "neednot", "shouldnot"})


def _denied(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare sentences of opposite mode: a general denial also denies the details."""
    if a.tokens[a.verb].key != b.tokens[b.verb].key or _places(a) != _places(b):
        return None
    negative, positive = (a, b) if a.mode in _NEGATIVE else (b, a)
    if positive.mode in _NEGATIVE:
        return None
    denied, claimed = content(negative.tokens), content(positive.tokens)
    narrower = {key_of(t) for t in b.tokens if t.kind in TIMES} if b.changed else set()
    if denied - claimed - narrower:
        return None
    details = claimed - denied
    plain = positive.mode in ("", "always") and negative.mode in ("not", "never")
    if details and not b.changed and not plain:
        return None
    return _modes(a, b)


def _vague(a: ParsedSentence) -> bool:
    """Return True without a subject, or if it depends on the text, such as "the default"."""
    subject = [t for t in a.subject if t.kind != "prep"]
    if not subject:
        return True
    return len(subject) == 1 and subject[0].key in lexicon.VAGUE_HEADS


def _slot(
    a: ParsedSentence, b: ParsedSentence, left: tuple[int, int], right: tuple[int, int]
) -> RelationFinding | None:
    """Compare sentences that differ in one place by the words in that place."""
    old, new = a.tokens[slice(*left)], b.tokens[slice(*right)]
    if a.text.startswith(("a ", "an ")):
        return None
    if left[0] < a.verb or right[0] < b.verb:
        return _holder(a, b, left, right)
    if left[0] == a.verb or _vague(a):
        return None
    if (
        old
        and new
        and a.tokens[a.verb].key == "be"
        and (old[0].kind == "prep") != (new[0].kind == "prep")
    ):
        return None
    # "open until 6" and "open from 10" are the two ends of one period.
    bounds, other_bounds = ({t.key for t in tokens} & _BOUNDS for tokens in (old, new))
    if bounds and other_bounds and bounds != other_bounds:
        return None
    old, new = bare(old), bare(new)
    if not old or not new:
        return None
    if a.tokens[a.verb].key == "be" and _is_occasion(old) and _is_occasion(new):
        old, new = (tuple(t for t in side if t.kind != "prep") for side in (old, new))
    reason = f"same subject and attribute, other value: {shown(old)} / {shown(new)}"
    kinds, other_kinds = [t.kind for t in old], [t.kind for t in new]
    if set(kinds) & TIMES and not set(kinds) <= TIMES:
        return None
    # "in the garden" and "on 14 June" may be place and time of the same wedding.
    if bool(set(kinds) & TIMES) != bool(set(other_kinds) & TIMES):
        return None
    verb = a.tokens[a.verb].key
    if all(t.is_value for t in (*old, *new)):
        if _same_hour(old[0], new[0]):
            return None
        if set(kinds) & set(other_kinds) and (len(old) == len(new) == 1 or set(kinds) <= TIMES):
            return _finding(b, reason) if _takes_one_value(a, b, left, kinds[0]) else None
        return None
    if len(old) == len(new) == 1:
        pair = (old[0].key, new[0].key)
        if pair in lexicon.OPPOSITES:
            return _finding(b, f"opposite states: {old[0].text} / {new[0].text}")
        if (a.passive or verb in ("be", stem("use"))) and _shared(lexicon.KINDS, *pair):
            return _finding(b, reason)
    if {t.key for t in (*old, *new)} & ({"and"} | lexicon.CIRCUMSTANCES):
        return None
    return _finding(b, reason) if _takes_one(a, b, left[0], old, new) else None


_BOUNDS: Final = frozenset({"from", "until", "till", "before", "after", "since"})


def _is_occasion(tokens: Sequence[ComparedToken]) -> bool:
    """Return True for "Monday at 3", and not for "Mondays at 3", of which there may be others."""
    return [t.kind for t in tokens] == ["day", "prep", "clock"] and tokens[0].text[-1] != "s"


def _same_hour(old: ComparedToken, new: ComparedToken) -> bool:
    """Return True for "8:00" and "8 pm", which may mean one time of the day."""
    exact = all("m" in token.text.lower() for token in (old, new))
    clocks = old.kind == new.kind == "clock"
    return clocks and not exact and abs(int(old.key) - int(new.key)) == 720


def _takes_one_value(
    a: ParsedSentence, b: ParsedSentence, place: tuple[int, int], kind: str
) -> bool:
    """Return True if the subject of ``a`` can have only one value in this place."""
    verb = a.tokens[a.verb].key
    before = a.tokens[place[0] - 1]
    if _is_condition(a, place) and not b.changed:
        return False
    if kind in TIMES and verb in lexicon.EVENTS and a.first | a.tokens[0].text[0].isupper():
        return b.changed
    if kind in ("version", "ordinal", "code", "address") or before.kind == "name":
        is_named = verb == "have" and place[0] > a.verb + 1 and before.kind == "word"
        return is_named or verb not in lexicon.MANY or verb in (stem("use"), stem("need"), "go")
    return True


def _is_condition(a: ParsedSentence, place: tuple[int, int]) -> bool:
    """Return True for a day on which something else applies: "opens at nine on Monday"."""
    if not {t.kind for t in a.tokens[slice(*place)]} <= TIMES - {"clock", "part of the day"}:
        return False
    predicate = (*a.tokens[a.verb : place[0]], *a.tokens[place[1] :])
    if a.tokens[a.verb].key == "be":
        return bool({t.key for t in predicate} & {"open", "close"})
    return any(t.kind == "clock" for t in predicate)


def _shared(groups: Mapping[str, frozenset[int]], left: str, right: str) -> bool:
    empty: frozenset[int] = frozenset()
    return bool(groups.get(left, empty) & groups.get(right, empty))


def _takes_one(
    a: ParsedSentence,
    b: ParsedSentence,
    at: int,
    old: Sequence[ComparedToken],
    new: Sequence[ComparedToken],
) -> bool:
    """Return True if the subject can have only one such value: "lives in", "manager is"."""
    verb, before = a.tokens[a.verb], a.tokens[at - 1]
    names = all(t.kind in ("name", "address", "version", "number") for t in (*old, *new))
    linked = before.kind == "prep" or a.tokens[at].kind == "prep"
    if a.passive and names and a.tokens[min(a.verb + 1, len(a.tokens) - 1)].key == "by":
        return True
    if verb.text == "been":
        return False
    if verb.key in lexicon.MANY and verb.key not in (stem("use"), "go"):
        return b.changed and verb.key == stem("prefer")
    person = a.first or (len(a.subject) == 1 and a.subject[0].text[0].isupper())
    if verb.key == "be":
        subject = [t for t in a.subject if t.kind != "prep"]
        if linked:
            direct = at == a.verb + 1 or before is a.tokens[a.verb + 1]
            if person:
                return (names and direct) or (b.changed and at == a.verb + 1)
            return direct or names
        if at != a.verb + 1:
            # Anna may be the sponsor of both Atlas and Borealis.
            several = all(t.text[0].isupper() for t in subject)
            return names and (not several or before.key in lexicon.TITLES)
        if {t.key for t in subject} & lexicon.ONLY_ONE:
            return not {t.key for t in (*old, *new)} & lexicon.STATES
        if _CALLED.search(a.text) and _CALLED.search(b.text):
            return not {t.key for t in subject} & lexicon.SEVERAL
        # "Dana is a senior analyst" and "Dana is now a principal analyst" are the same job.
        behind = a.tokens[at + len(old) : at + len(old) + 1]
        if b.changed and person and _ONE_OF_A_KIND.search(a.text) and behind:
            return behind[0].kind == "word"
        return names and not {t.key for t in subject} & lexicon.SEVERAL
    if verb.key == "go":
        return linked and names and (b.changed or not person)
    if verb.key in lexicon.SINGLE and (linked or a.passive):
        return True
    if a.changed or max(len(old), len(new)) > 4:
        return False
    return b.changed


_CALLED: Final = re.compile(r"\b(?:is|are) (?:now )?(?:called|named)\b")
_ONE_OF_A_KIND: Final = re.compile(r"\b(?:am|is|are|was|were) an? ")
"""A role that many people can have: "is a teacher"."""


def _holder(
    a: ParsedSentence, b: ParsedSentence, left: tuple[int, int], right: tuple[int, int]
) -> RelationFinding | None:
    """Compare "Ann owns the billing service" with "Ben owns the billing service"."""
    old, new = a.tokens[slice(*left)], b.tokens[slice(*right)]
    rest = {t.key for t in (*a.tokens[: left[0]], *a.tokens[left[1] : a.verb])}
    if left[1] > a.verb or right[1] > b.verb or not old or not new or rest - lexicon.TITLES:
        return None
    if any(t.kind == "prep" or (t.is_value and t.kind != "address") for t in (*old, *new)):
        return None
    if a.passive or any(_ONE_OF_A_KIND.search(sentence.text) for sentence in (a, b)):
        return None
    verb = a.tokens[a.verb]
    predicate = {t.key for t in a.tokens[a.verb :]}
    holds = (
        verb.key in lexicon.HOLDERS
        or (verb.key == "be" and bool(predicate & lexicon.HOLDER_WORDS))
        or (b.changed and verb.key in lexicon.TAKEN_OVER)
    )
    if not holds or not all(t.text[0].isupper() or t.kind == "address" for t in (old[0], new[0])):
        return None
    return _finding(b, f"another holder of the same role: {shown(old)} / {shown(new)}")


def _reordered(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare sentences that differ in word order and in only one word or value."""
    if a.past or b.past or _vague(a):
        return None
    if (a.mode or "always") != (b.mode or "always") or a.mode in ("not", "never"):
        return None
    left, right = content(a.tokens) - AGENTS, content(b.tokens) - AGENTS
    verbs = a.tokens[a.verb].key, b.tokens[b.verb].key
    if verbs[0] != verbs[1] and _shared(lexicon.ALIKE, *verbs):
        left, right = left - {verbs[0]}, right - {verbs[1]}
    (lost, new), common = (left - right, right - left), left & right
    if len(lost) != 1 or len(new) != 1 or len(common) < 2 or _places(a) != _places(b):
        return None
    old = next(t for t in a.tokens if key_of(t) in lost)
    replacement = next(t for t in b.tokens if key_of(t) in new)
    at, other_at = a.tokens.index(old), b.tokens.index(replacement)
    if at < a.verb or other_at < b.verb:
        return None
    if (old.key, replacement.key) in lexicon.OPPOSITES:
        return _finding(b, f"opposite states: {old.text} / {replacement.text}")
    if _same_hour(old, replacement):
        return None
    place = (at, at + 1)
    if old.is_value and old.kind == replacement.kind and _takes_one_value(a, b, place, old.kind):
        return _finding(
            b, f"same subject and attribute, other value: {old.text} / {replacement.text}"
        )
    return None


def _places(a: ParsedSentence) -> frozenset[str]:
    """Return the prepositions that change the meaning: "from", "with", "before"."""
    return frozenset(t.key for t in a.tokens if t.key in lexicon.SPECIFIC_PREPS)


def _lived(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare two states of one person's life."""
    who, whose = (content(s.subject) - AGENTS - {"i"} or {"i"} for s in (a, b))
    if not a.subject or not b.subject or who != whose or a.past:
        return None
    states = state_change(a.text, b.text)
    if states is None:
        return None
    return RelationFinding(
        Relation.UPDATES, f"another state of the same one: {states[0]} / {states[1]}",
        changed=True,
    )  # fmt: skip


# -- the same statement in another form -----------------------------------------------------------


def _reversed(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare "the clinic accepts X" with "X is no longer accepted by the clinic"."""
    first, second = _active(a, b), _active(b, a)
    if first is a and second is b:
        return None
    # "Logs are kept for 30 days" and "we keep backups for 90" are about different things.
    patient, opposite = (a.subject, b) if first is not a else (b.subject, a)
    if not content(patient) <= content(opposite.tokens):
        return None
    return _aligned(first, second)


def _active(a: ParsedSentence, b: ParsedSentence) -> ParsedSentence:
    """Return "we sell honey" for "honey is sold by us"; other sentences unchanged."""
    verb = _participle(a)
    if not (a.passive or verb.key != a.tokens[a.verb].key) or verb.key != b.tokens[b.verb].key:
        return a
    rest = a.tokens[a.tokens.index(verb) + 1 :]
    by = next((at for at, t in enumerate(rest) if t.kind == "prep" and t.key == "by"), None)
    if by is None:
        if not b.subject or not content(b.subject) <= AGENTS:
            return a
        agent, rest = b.subject, rest
    else:
        end = next((at for at in range(by + 1, len(rest)) if rest[at].kind == "prep"), len(rest))
        agent, rest = rest[by + 1 : end], (*rest[:by], *rest[end:])
    if b.passive:
        return a
    tokens = (*agent, verb, *a.subject, *rest)
    return replace(a, tokens=tokens, verb=len(agent), passive=False)


def _opposite_state(a: ParsedSentence, b: ParsedSentence) -> RelationFinding | None:
    """Compare "is still open" with "has been closed"."""
    if a.past or a.deictic or b.deictic or _vague(a):
        return None
    rest = a.tokens[a.verb + 1 :]
    verb = _participle(b)
    if a.tokens[a.verb].key != "be" or not rest or a.mode or b.mode or verb.key == "be":
        return None
    if any(t.is_value for t in rest) or not (b.passive or b.past or b.perfect):
        return None
    if content(a.subject) != content(b.subject) or (rest[0].key, verb.key) not in (
        lexicon.OPPOSITES
    ):
        return None
    return RelationFinding(
        Relation.UPDATES, f"opposite states: {rest[0].text} / {verb.text}", changed=True
    )


def _participle(a: ParsedSentence) -> ComparedToken:
    """Return the verb of a sentence; for "is accepted", the participle."""
    verb, following = a.tokens[a.verb], a.tokens[a.verb + 1 : a.verb + 2]
    return (
        following[0]
        if verb.key == "be" and following and is_past(following[0].text.lower())
        else verb
    )
