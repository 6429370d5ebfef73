"""Which texts are an echo of what the memory handed out. Lines are told by a normal form's hash.

What a memory says comes back: an agent repeats it, a user pastes it. Taken for a source it would
make its own ground firmer with every round. Equal lines are an echo whoever says them; other
words are one only where nothing in them is new (``memgraph.policy.echo_wording``).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

from memgraph.model.speaking import AGENTS, SILENT, Voice, voice_of
from memgraph.policy.sentences import split_sentences

# A model has what it was told at hand for as long as its conversation lasts, a user what it was
# just shown; a day later an equal sentence of a user is a statement of its own.
WINDOW_MS = 86_400_000
# Whole days, in any time zone.
LATE_MS = 2 * WINDOW_MS
# Fewer words say nothing by themselves: "ok", "yes please", "thank you".
MIN_WORDS = 3
MIN_CHARS = 12
# Scripts without blanks: so many characters of them say as much.
MIN_UNSPACED_CHARS = 6

AGENT_ROLES = AGENTS | SILENT

MEMORY_ID = r"(?:fact|ep|ref)_[0-9A-Za-z]{20,32}"
_CITATION = re.compile(rf"\s*[\[(]\s*{MEMORY_ID}(?:\s*[,;]\s*{MEMORY_ID})*\s*[\])]", re.IGNORECASE)
# As prompts cite: a short id, and the mark of a contradiction.
_SHORT_ID = r"[0-9A-HJKMNP-TV-Z]{8}"
SHORT_CITATION = rf"\[{_SHORT_ID}\]"
_CITED_SHORT = re.compile(rf"\[({_SHORT_ID})\]")
MARK = r"\[(?:contradicted|replaced) by [^\[\]]{1,250}\]"
_SHORT = re.compile(rf"\s*(?:{SHORT_CITATION}|{MARK})")
_LONE_ID = re.compile(rf"\b{MEMORY_ID}\b", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPHATIC = frozenset("*`~_")
_EMPHASIS = re.compile(r"[*`~]+|(?<![^\W_])_+|_+(?![^\W_])")
_QUOTES = re.compile("[\"“”„‟«»「」『』]|(?<!\\w)['‘’‚‛]|['‘’‚‛](?!\\w)")
_MARKER = re.compile(r"^(?:(?:[-+*•·>#|–—]+|\(?\d{1,3}[.)]|\[[ xX]?\])\s+)+")
_LABELS = "|".join(
    (
        *sorted(AGENT_ROLES | {"user", "human", "me", "you"}),
        "decision|event|fact|goal|identity|memory|observation|preference|todo",
    )
)
_LABEL = re.compile(rf"^(?:(?:{_LABELS}):\s+)+", re.IGNORECASE)
# Whoever it is: a name before words in quotation marks tells who said them, not what.
_SPEECH = re.compile('^[^\\W\\d_][^:"“„«]{0,40}:\\s*(?=["“„«].*["”“»][.!?]?$)')
# What the bulletin writes before and behind a memory's own text.
_AT = r"(?:\d{4}-\d\d-\d\d|undated) "
_BULLETIN_HEAD = re.compile(
    rf"^(?:(?:{_AT})?(?:\(until \d{{4}}-\d\d-\d\d\) )|{_AT}(?:\([^)]{{1,40}}\) )?"
    r"|Uncertain \(\d\.\d\d\): |Its ground fell on \d{4}-\d\d-\d\d: )"
)
_FROM_FILE = re.compile(r"(?<=”) \(from .{1,60}\)$")
# Each of them tells a date, a figure or a file.
_TELLING = re.compile(r"\d-\d\d |\d-\d\d[:)]|\(\d|undated |\(from ")
_CONFLICT = re.compile(rf"^{_AT}(.{{1,2000}}?) against {_AT}(.{{1,2000}})$")
_ENDS = " \t.,;:!?…。、！？"
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")
_WORD = re.compile(r"\w+")


# With what an agent begins to tell what it remembers, in lower case.
_TOLD = (
    r"(?:yes|yeah|sure|ok|okay|right|well|so|also|certainly|absolutely|of course|great|great news"
    r"|good question|correct|indeed|noted|got it|understood|hi|hello|in short|to sum up)",
    r"(?:as|like) i (?:can )?(?:recall|remember|noted|mentioned|said|understand|know|see)(?: it)?",
    r"as (?:far as i (?:know|recall|remember)|noted|mentioned|discussed)(?: (?:before|earlier))?",
    r"(?:as )?you(?:'ve| have)? (?:already |once |also |previously )?"
    r"(?:told me|mentioned|said|noted)(?: (?:before|earlier|to me))?(?: that)?",
    r"as you know",
    r"(?:if i (?:recall|remember)(?: correctly| right)?)",
    r"i (?:also |can |do |still )?(?:recall|remember|know|see|believe|think|understand|noted|have"
    r" noted|have it noted)(?: here| from (?:my|our) [a-z ]{1,30})?(?: that)?",
    r"(?:my|the|your) (?:memory|memories|notes|records)(?: also)?"
    r" (?:say|says|show|shows|tell|tells|state|states|indicate|indicates)(?: me)?(?: that)?",
    r"(?:according to|based on|from|per|looking at) (?:my|the|your|our)"
    r" (?:memory|memories|notes|records|bulletin|(?:earlier|previous|past) conversations?)",
    r"from memory",
    r"(?:here(?: is|'s)|this is) what i (?:know|remember|have|recall)(?: about you| of it)?",
)
_LEAD_IN = re.compile(rf"^(?:{'|'.join(_TOLD)})(?:\s*[,:;!.–—-]+\s+|\s+(?=\w))", re.IGNORECASE)
_MAX_LEAD_INS = 4


class EchoReason(StrEnum):
    """Why a text is no source. Stable codes.

    LINE: it is a line that was handed out. RECEIPT: it says nothing beyond what was recalled
    shortly before. KNOWN: an agent says what a memory said that stood at that time. FORMAT: it is
    the memory's own output, pasted.
    """

    LINE = "line"
    RECEIPT = "receipt"
    KNOWN = "known"
    FORMAT = "format"


def is_agent(source_role: str | None) -> bool:
    """Whether a speaker may be a machine: whoever is not ``user`` or ``human``.

    A name alone may be an agent's, which says again what it was told. Callers that know of a
    person by another name give ``heard_role``.
    """
    return voice_of(source_role) is not Voice.PERSON


def heard_role(source_role: str | None, told_as: str | None) -> str | None:
    """A role that says by itself what a turn was told to be."""
    if told_as is None:
        return source_role
    return "user" if voice_of(source_role, told_as) is Voice.PERSON else "assistant"


def known_echo(voice: Voice) -> EchoReason | None:
    """Whether a statement that repeats a stored memory adds no support to it.

    Only a person's does: an agent that says again what is remembered adds nothing, however it came
    to know it, so a receipt that was lost lets no echo in.

    Args:
        voice: of the turn that the statement is quoted from.
    """
    return None if voice is Voice.PERSON else EchoReason.KNOWN


def judged_at(said_ms: int, stored_ms: int) -> int:
    """The time before which something must have been handed out for a turn to be its echo.

    When it was stored: a turn's own time may be told in whole days. A turn from long before is
    history that came in late, and is judged by its own time.
    """
    return said_ms if said_ms < stored_ms - LATE_MS else stored_ms


@lru_cache(maxsize=1024)
def normal_form(line: str) -> str:
    """A line without case, markers, emphasis, quotation marks, citations, labels and end marks."""
    return " ".join(normal_marks(line).casefold().split()).strip(_ENDS)


def normal_marks(line: str) -> str:
    """A line without marks, citations and labels, its case and ends as they were."""
    plain = line if line.isascii() else unicodedata.normalize("NFKC", line)
    text = _without_marks(plain)
    if ":" in text:
        text = _LABEL.sub("", _SPEECH.sub("", text))
    return _QUOTES.sub("", text).strip()


def without_lead_in(text: str) -> str:
    """A sentence without "as I recall", "yes, you told me that" and the like before it."""
    for _ in range(_MAX_LEAD_INS):
        match = _LEAD_IN.match(text)
        if match is None or match.end() >= len(text):
            break
        text = text[match.end() :]
    return text


def says_enough(form: str) -> bool:
    """Whether a normal form is long enough to be told by its hash."""
    if len(_UNSPACED.findall(form)) >= MIN_UNSPACED_CHARS:
        return True
    words = [word for word in _WORD.findall(form) if not word.isnumeric()]
    return len(words) >= MIN_WORDS and len(form) >= MIN_CHARS


def form_hash(form: str) -> int:
    """64 bits of BLAKE2b as SQLite keeps an integer: signed."""
    digest = hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@lru_cache(maxsize=128)
def line_hashes(text: str) -> frozenset[int]:
    """What a handed-out text is known by: each of its lines, each sentence of them.

    A line of the bulletin also by the memory's own text in it.
    """
    forms: set[str] = set()
    for unit in units(text):
        for line in (unit, *_inner(unit)):
            sentences = split_sentences(line)
            forms.update(map(normal_form, {line, *sentences}))
    return frozenset(form_hash(form) for form in forms if says_enough(form))


def units(text: str) -> list[str]:
    """The lines of a text; one that goes on in small letters belongs to the one before."""
    found: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            found.append("")
        elif found and found[-1] and _goes_on(found[-1], line):
            found[-1] = f"{found[-1]} {line}"
        else:
            found.append(line)
    return [line for line in found if line]


def cited_ids(text: str) -> tuple[str, ...]:
    """Memory ids that a text names, once each, in order."""
    return tuple(dict.fromkeys(_LONE_ID.findall(text)))


def cited_short_ids(text: str) -> tuple[str, ...]:
    """Return what a text cites as prompts do, once each, in order: the last characters of ids."""
    return tuple(dict.fromkeys(_CITED_SHORT.findall(text)))


def without_citations(line: str) -> str:
    """A line without the memory ids in it, and without what prompts write beside a short one."""
    return _SHORT.sub("", _LONE_ID.sub("", _CITATION.sub("", line))).rstrip()


def _goes_on(before: str, line: str) -> bool:
    return line[0].islower() and before[-1] not in ".!?:;…。！？" and not _MARKER.match(line)


def inner_texts(line: str) -> tuple[str, ...]:
    """What a line says without marks and citations, and without what a bulletin says before it."""
    return tuple(map(normal_marks, _inner(line))) or (normal_marks(line),)


def _inner(line: str) -> Iterator[str]:
    """The texts of memories that a line of the bulletin holds."""
    if not _TELLING.search(line):
        return
    bare = _without_marks(line)
    conflict = _CONFLICT.match(bare)
    if conflict:
        yield from (_FROM_FILE.sub("", each) for each in conflict.groups())
        return
    inner = _FROM_FILE.sub("", _BULLETIN_HEAD.sub("", bare))
    if inner != bare:
        yield inner


def _without_marks(text: str) -> str:
    # Most lines have none of these, and to look for a character costs next to nothing.
    if "_" in text:
        text = _LONE_ID.sub("", _CITATION.sub("", text))
    if "[" in text:
        text = _SHORT.sub("", text)
    text = _MARKER.sub("", text.strip())
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    if not _EMPHATIC.isdisjoint(text):
        text = _EMPHASIS.sub("", text)
    return _MARKER.sub("", text.strip()).strip()
