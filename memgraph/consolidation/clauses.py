"""Cut what was said into sentences, and a sentence into clauses. English only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from memgraph.text.sentences import split_sentences

MAX_TURN_CHARS: Final = 16_000
MAX_SENTENCE_CHARS: Final = 1_000


def alternatives(text: str) -> str:
    """Return a pattern of alternatives, without the blanks around each bar."""
    return "(?:" + re.sub(r" *\| *", "|", " ".join(text.split())) + ")"


_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)")
# Quoted lines, lists, links, code.
_NOT_SAID: Final = re.compile(
    r"^\s*(?:[>|#“]|[-*+•]\s|\d{1,3}[.)]\s|\S+://\S+\s*$|[$%]\s|[{}\[\]<])|[;{}=]\s*$|=>|==|"
    r"\)\s*:\s*$|</|\w\(\w*\)|[\w)] = [\w(\"']|\\[(\[]|^\s*(?:def|class|import|from|return|"
    r"function|const|let|var|SELECT|INSERT)\b.*[({;=]"
)
# Somebody's words, and the day that stands behind those of a fact.
_SPOKEN: Final = re.compile(r"“[^”]{12,}”")
_LEADING: Final = re.compile(r"[ ,.!…\-–—:;*]*(?:\(\d{4}-\d\d-\d\d\)\s*)?")
_SMALL_END: Final = re.compile(r"(?<=[\w'’)]{2}\.)\s+(?=[^\W\d_])")
_STAGE: Final = re.compile(r"\[[^\[\]]{0,400}\]|(?<!\*)\*[^*\n]{1,200}\*(?!\*)")
_OPENER: Final = re.compile(
    alternatives(
        r"""hey | hi | hello | yeah | yep | yes | no | nope | oh | wow | well | so | and | but |
        also | plus | btw | by the way | actually | anyways? | haha | lol | thanks? | thank you |
        sorry | ok | okay | sure | fyi | right | true | cool | nice | great | awesome | absolutely |
        definitely | exactly | totally | hmm | um | ah | guess what | to be honest | honestly |
        on another note | of course | in fact | you know | correction | update | just so you know |
        now | listen | before i forget | speaking of which |
        (?:one )?(?:last|more|other|another)? ?thing |
        next | look | unfortunately | luckily | besides | lately |
        (?:please )?(?:remember|note)"""
    )
    + r"\b(?: that\b)?\s*(?:[,:!.…]+\s*|[-–—]+\s+|(?=(?:i|we|my|our|the|no)\b|(?-i:[A-Z])))",
    re.IGNORECASE,
)
_CLOSERS: Final = (
    *("though", "then", "too", "anyway", "thanks", "please", "mate", "love", "actually"),
    *("you know", "by the way", "btw", "lol", "haha", "innit", "honestly", "mind"),
)
_SUBJECT: Final = alternatives(
    r"""i | we | he | she | it | they | you | this | that | there | these | those | my | our | his |
    her | their | your | the | everyone | nobody | somebody | what | how | who | please | can |
    could | would | should | do | does | did | is | are | any | maybe | hopefully | let"""
)
_AND: Final = alternatives(
    """and | but | so | because | '?cause | cuz | though | although | while | whereas | yet | plus |
    or | then | otherwise"""
)
# Where a new clause begins, or one that comments on the clause before.
_BREAK: Final = re.compile(
    r"\s*;\s+|\s+[-–—]+\s+(?:even though\s+)?|\s*—\s*|(?<=\w)-\s|:\s+|\s+\((?=[^()]*\)[.!]?$)"
    rf"|,?\s+{_AND}(?:,? (?:then|now|also))?\s+(?={_SUBJECT}\b|(?-i:[A-Z])\w+ \w+(?:s|ed)\b|"
    rf"(?:since|if|when|as|with)\b)|,\s+(?={_SUBJECT}\b)|,\s+(?=(?:which|where|who)\b)"
    r"|,\s+(?=(?-i:[A-Z])[a-z]+(?:, (?:my|our) |['’]s (?:\w+ing|got|been|an?|the)\b| (?:is|was|"
    r"has|will) ))"
    r"|,\s+(?:so|but)\s+(?!far|that)|,?\s+(?=(?:if|unless|until|once|when|while) "
    rf"{_SUBJECT}\b)|\s+(?:'?cause|because|(?:even )?though)\s+",
    re.IGNORECASE,
)
# "Leo and I" is one subject.
_OF_A_PAIR: Final = re.compile(r"[A-Z][\w-]+|(?:[Bb]oth )?(?:[Mm]e|[Mm]y [\w-]+)")
_TURNED: Final = re.compile(r"(?:so|but|because|'?cause|(?:even )?though)\b.*")
_ASIDE: Final = re.compile(r"(?:with|since|if|when|as|what|such|so)\b", re.IGNORECASE)
REASON: Final = re.compile(r",? (?:because|since) ", re.IGNORECASE)
SUBORDINATE: Final = re.compile(
    r"(?:if|unless|when|whenever|while|since|as|after|before|because|although|though|until|once)\b",
    re.IGNORECASE,
)
PAST: Final = alternatives(
    r"""(?!need)\w{2,}ed | went | made | took | came | saw | gave | found | told | brought | caught
    | drew | drove | ate | flew | held | led | met | paid | ran | sang | sent | spoke | spent |
    taught | wrote | broke | put | did | won | chose | grew | knew | began | bought | built |
    sold | kept | left | lost | felt | sat | stood | slept | swam | threw | wore | woke | rode |
    fought | dealt | became | forgot | drank | stuck | (?:re|mis)?took | heard | meant | rose"""
)
FINITE: Final = re.compile(
    r"\b(?:is|are|am|was|were|has|have|had|will|would|must|may|does|do|did|should|can|could|"
    rf"cannot|got|left|fell|cost|said|kept|\w{{2,}}n't|{PAST})\b|['’](?:s|m|re|ve|d|ll)\b|"
    r"\b(?:i|we|they|you) \w+|^(?:he|she|it) \w|^(?:(?:my|our|the) [\w-]+|[a-z]+) (?:\w+ )?"
    r"\w{3,}s\b",
    re.IGNORECASE,
)


class TurnSentence(NamedTuple):
    """A sentence of a turn: ``line[start:end]``, without what only opens or closes it.

    Attributes:
        line: what is said in one breath, its blanks single.
        begins: where the whole of the sentence begins.
    """

    line: str
    start: int
    end: int
    begins: int

    @property
    def text(self) -> str:
        return self.line[self.start : self.end]


def sentences_of(content: str, speakers: Collection[str]) -> Iterator[TurnSentence]:
    """Yield the sentences of a turn without code, lists, quoted lines, links and openers."""
    fenced = False
    for line in content[:MAX_TURN_CHARS].splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not _NOT_SAID.search(line[:2_000]):
            for part in _STAGE.split(line):
                yield from _sentences_in(" ".join(part.split()), speakers)


def _sentences_in(line: str, speakers: Collection[str]) -> Iterator[TurnSentence]:
    at = 0
    for part in split_sentences(line):
        # Whoever writes without capitals ends a sentence by a full stop all the same.
        small = part[:1].islower()
        for sentence in _SMALL_END.split(part) if small else (part,):
            begins = line.index(sentence, at)
            at = begins + len(sentence)
            if len(sentence) <= MAX_SENTENCE_CHARS and not _SPOKEN.search(sentence):
                start, end = _trimmed(sentence, speakers)
                yield TurnSentence(line, begins + start, begins + end, begins)


def _trimmed(sentence: str, speakers: Collection[str]) -> tuple[int, int]:
    """Return where a sentence begins and ends without its opener and whom it addresses."""
    start = _LEADING.match(sentence).end()  # type: ignore[union-attr]
    for _ in range(4):
        opener = _OPENER.match(sentence, start)
        called, comma, _rest = sentence[start:].partition(", ")
        if opener is not None:
            start = opener.end()
        elif comma and called in speakers:
            start += len(called) + 2
        else:
            break
    head, comma, called = sentence[start:].rstrip(".!").rpartition(", ")
    closes = comma and (called in speakers or called.lower() in _CLOSERS)
    return start, start + len(head) if closes else len(sentence)


def clauses_of(sentence: str) -> list[tuple[int, int]]:
    """Return where the clauses of a sentence begin and end.

    What has no verb belongs to the clause before it, or to the next where it is the first.
    """
    matches = (match.span() for match in _BREAK.finditer(sentence))
    breaks = [(0, 0), *(span for span in matches if not _OF_A_PAIR.fullmatch(sentence, 0, span[0]))]
    ends = [stop for stop, _ in breaks[1:]] + [len(sentence)]
    spans: list[tuple[int, int]] = []
    waits = False
    for (stop, start), end in zip(breaks, ends, strict=True):
        link = sentence[stop:start].strip(" ,-–—").lower()
        verb = FINITE.search(sentence[start:end]) is not None
        apart = verb or _TURNED.fullmatch(link) or _ASIDE.match(sentence, start)
        # "Leo and our son are coming": two subjects of one verb.
        paired = link == "and" and sentence[stop] == " "
        if spans and ((waits and (paired or not (link.isalpha() or ":" in link))) or not apart):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
        waits = (waits or len(spans) == 1) and not verb
    return spans
