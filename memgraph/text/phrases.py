"""Expand contractions, and replace phrases by single words."""

from __future__ import annotations

import re
from typing import Final

from memgraph.text import lexicon
from memgraph.text.lexicon import WEEKDAY_NAMES
from memgraph.text.quantities import write_out
from memgraph.text.tokens import LETTERS, TypedWord, split_words

MAX_CHARS: Final = 400
"""The maximum number of characters read from a text; claims are shorter."""
_CONTRACTIONS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"[’`´]", "'"),
        (r"\bcan't\b|\bcannot\b|\bcan ?not\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"\bain't\b", "is not"),
        (r"\b(do|does|did|is|are|was|were|has|have|had|would|could|should|must|need)n'?t\b",
         r"\1 not"),
        (r"\b(I)'m\b", r"\1 am"),
        (r"\b(I|we|you|they|who)'(?:ve)\b", r"\1 have"),
        (r"\b(I|we|you|they)'(?:re)\b", r"\1 are"),
        (r"\b(I|we|you|they|he|she|it)'ll\b", r"\1 will"),
        (r"\b(I|we|you|they|he|she|it)'d\b", r"\1 would"),
        (r"\b(he|she|it|that|there|who|here)'s\b", r"\1 is"),
        (r"\blet's\b", "let us"),
        (r"'s (?=(?:a|an|the|our|my|not|no|in|on|at|now|been|\w{3,}ing)\b)", " is "),
        (r"\b(?:ne |n')(\w+) plus\b", r"not_any_more \1"),
        (r"\b(?:ne |n')(\w+) pas\b", r"not \1"),
        (r"\bn'(?=\w)|\b[ld]'(?=\w)", ""),
    )
)  # fmt: skip
_PHRASES: Final = tuple(
    (hints.split(), re.compile(pattern, re.IGNORECASE), replacement)
    for hints, pattern, replacement in (
        (":",
         r"^([^:]{3,60}): (?=(?:on )?(?:\d\d? )?(?:mon|tues|wednes|thurs|fri|satur|sun|jan|feb"
         r"|mar|apr|"
         r"may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b)", r"\1 is "),
        ("home",
         r"^my home is (?=in\b|at\b)", "I live "),
        ("home",
         r"^(?:the )?([\w-]+)(?:'s?)? home is (?=in\b|at\b)", r"\1 lives "),
        ("place lieu tient hace",
         r"\b(?:takes? place|took place|a lieu|ont lieu|se tient|se hace)\b", "happens"),
        ("own",
         r"\b(I|we|you|they) own\b", r"\1 have"),
        ("well",
         r"\bas well\b", "also"),
        ("go goes",
         r"\b(?:go|goes) (?=[a-z]{3,}ing\b)", ""),
        ("there",
         r"^there (?:is|are) (?:still |now |currently )?(?!\w+thing\b)(.+?)"
         r"(?= (?:in|on|at|by|near|for|with|next|under|behind|every)\b|[.,!]|$)", r"\1 exists"),
        ("and but turns turned",
         r"^(?:and |but )?(?:it )?turn(?:s|ed) out,? (?:that )?|^(?:and|but),? ", ""),
        ("decided agreed",
         r"\b(?:decided|agreed) to (?=charge\b)", ""),
        ("had",
         r"\bhad to (mov|postpon|reschedul|chang|rais|shift|push|lower)e?(?= .* to\b)", r"\1ed"),
        ("goes go",
         r"\b(?:goes|go) by(?: the)?(?: nick)?(?:name)?(?: of)? (?=[A-Z])", "is called "),
        ("old",
         r"\b(is|am|are) (\w+) years old\b", r"\1 \2"),
        ("turned",
         r"\bturned (\d+|[a-z]+(?:teen|ty|een|one|two|three|four|five|six|seven|eight|nine|ten))"
         r"\b(?: (?:on|in|this|last|today|yesterday) ?.*)?$", r"is now \1"),
        ("doors",
         r"\b(?:shut|closed) (?:its|their) doors\b", "was abandoned"),
        ("put",
         r"\b(?:had to )?put (.{2,30}?) to sleep\b", r"lost \1"),
        ("put",
         r"\bput (.{2,40}?) up to\b", r"raised \1 to"),
        ("since",
         r" since (?=(?:we|i|they|he|she|the \w+ (?:was|were|is))\b)", " now ; "),
        ("longer mehr länger ya plus",
         r"\b(?:no longer|nicht (?:mehr|länger)|ya no|ne plus)\b", " not_any_more "),
        ("while time",
         r"\bfor a (?:while|time)(?=[.!]?$)", " formerly "),
        ("more anymore longer ceased",
         r"\b(?:any ?more|any longer|ceased to)\b", " now "),
        ("not",
         r"\b(?:isn't|is not|are not|am not|be not|not) (?:allowed|permitted|supposed) to\b",
         " forbid "),
        ("not mustn",
         r"\b(?:must|may|shall) not\b|\bmustn't\b", " forbid "),
        ("not",
         r"\b(?:do|does|did|need) not (?:need|have) to\b|\b(?:is|are) not (?:required|obliged) to\b"
         r"|\bneed not\b(?! \w+ an?\b)", " neednot "),
        ("not unable",
         r"\b(?:is|are|am) not able to\b|\bunable to\b|\bcan not\b", " cannot "),
        ("not",
         r"\bshould not\b", " shouldnot "),
        ("to",
         r"\b(?:is|are|am) (?:allowed|permitted|free|welcome) to\b", " may "),
        ("able",
         r"\b(?:is|are|am) able to\b", " can "),
        ("to",
         r"\b(?:has|have|need|needs) to\b|\b(?:is|are|am) (?:required|obliged) to\b", " must "),
        ("used",
         r"\b(?:used to)\b", " formerly "),
        ("half",
         r"\bevery half(?:-| an )?(?: )?hour\b", "every 30 minutes"),
        ("these present moment now here by meanwhile "
         "meantime as nowadays lately recently from for last",
         r"\b(?:these days|at (?:present|the moment)|from (?:now|here) on|by now|meanwhile|"
         r"in the meantime|as of (?:now|today|this \w+|next \w+)|nowadays|lately|recently|"
         r"from (?:this|next) \w+ on|for good|at last)\b", " now "),
        ("weekend last this yesterday tonight",
         r"(?:^|,? )(?:over the weekend|(?:last|this) (?:week|month|year|spring|summer|autumn|"
         rf"winter|quarter|night|morning|weekend|{'|'.join(WEEKDAY_NAMES['en'])})"
         r"|yesterday|tonight)\b(?! of\b)", " lately "),
        ("name", r"'s name (is|was) (?-i:(?=[A-Z]))", r" \1 called "),
        ("job position working",
         r"\b(?:started|starts|got|took|accepted) (?:(?:a|my|his|her|their) new (?:job|position)"
         r"|working) (?=at|for|with)", "now works "),
        ("come grown learned learnt begun",
         r"\b(?:(?:have|has) )?(?:come|came|grown|grew|learned|learnt|begun) to "
         r"(?=love|like|hate|dislike|enjoy|prefer)", "now "),
        ("new",
         r"\b(is|are) (the|our|my|his|her|their) new (?=\w)", r"\1 now \2 "),
        ("stepped resigned retired fired dismissed removed sacked",
         r"\b(?:stepped down|resigned|retired|(?:was|were|has been|got) (?:fired|dismissed|removed"
         r"|sacked))(?: (?:as|from being) )(?!an? )(?:(the|our) )?", r"is not_any_more \1 "),
        ("up down",
         r"\b(?:went|gone|goes|is|are|came) (?:up|down) to\b", "raised to"),
        ("back forward off",
         r"\b(?:pushed|put|moved|brought|pulled|set) (?:back|forward|off) (?=(?:to|until|by)\b)",
         "postponed "),
        ("handed",
         r"\bhanded over\b|\bhanded(?= .{0,60}\bover\b)", "dropped"),
        ("up rid",
         r"\b(?:gave|given|give|giving) up(?: on)?\b|\bgot rid of\b|\bgotten rid of\b", "quit"),
        ("down",
         r"\b(?:shut|closed|shutting) down\b", "retired"),
        ("over passed handed",
         r"\b(?:took|taken|takes|taking) over\b"
         r"|\b(?:passed|handed)(?: over)?(?= .{0,60}\bfrom\b)", "transferred"),
        ("time times exception",
         r"\b(?:all the time|at all times|without exception)\b", "always"),
        ("more longer over above exceeding least less mindestens",
         r"\b(?:more than|longer than|over|above|exceeding|at least|no less than|mindestens)"
         r" (?=\d|[a-z]+ (?:days|hours))", " least "),
        ("less fewer under below most up more höchstens",
         r"\b(?:less than|fewer than|under|below|at most|up to|no more than|höchstens)"
         r" (?=\d|[a-z]+ (?:days|hours))", " most "),
        ("half",
         r"\bhalf an hour\b|\ba half hour\b", "30 minutes"),
        ("quarter",
         r"\bquarter of an hour\b", "15 minutes"),
        ("half",
         r"\b(?:one|an hour) and a half(?: hours)?\b", "1.5 hours"),
        ("minute hour day week month year",
         r"\b(for|in|takes?|took|gets?|have|has|within|after|lasts?|is|of|than) (?:a|an) "
         r"(?:full |whole |single )?(?=(?:minute|hour|day|week|month|year)\b)", r"\1 1 "),
    )
)  # fmt: skip
"""Hint words (every matching text contains at least one), the pattern, and its replacement."""
_PHRASES_BY_HINT: Final = {
    hint: tuple(at for at, (hints, *_) in enumerate(_PHRASES) if hint in hints)
    for hint in {hint for hints, *_ in _PHRASES for hint in hints}
}
# A quick check, since most texts have no contractions.
_CONTRACTED: Final = re.compile(
    r"['’`´]|\b(?:ne |can ?not\b"
    r"|(?:do|does|did|is|are|was|were|has|have|had|would|could|should|must|need)nt\b)",
    re.IGNORECASE,
)
# Formulas, labels, list heads and inferences are not independent statements.
_NO_CLAIM: Final = re.compile(
    r"[?:]$|[=\\]|\*\*|^(?:so|therefore|thus|hence|let|suppose|given|consider|ensure|choose|"
    r"please|enjoy|start|make sure|note|for example|e\.g\.|example)\b"
    r"|(?<![.@])\bexample\b(?!\.)|\bthis means\b|\b(?:is|are|'re|'s) so (?!far\b)",
    re.IGNORECASE,
)
_PARTLY: Final = re.compile(
    r"\bnot (?:all|every|only|necessarily|just|entirely|always|fully|exactly|really|yet|so|too|"
    r"very|quite|sure)\b",
    re.IGNORECASE,
)


def _normalise(text: str) -> tuple[str, bool]:
    """Return a text with contractions expanded, and whether it can be a plain claim."""
    plain = text.strip()[:MAX_CHARS]
    claim = not _NO_CLAIM.search(plain)
    if _CONTRACTED.search(plain):
        for pattern, replacement in _CONTRACTIONS:
            plain = pattern.sub(replacement, plain)
    return plain, claim and not _PARTLY.search(plain)


def _rewrite(text: str) -> str:
    """Return a text with each phrase, such as "is not allowed to", replaced by one word."""
    words = {*LETTERS.findall(text.lower()), *(":" if ":" in text else "")}
    for place in sorted(
        {place for word in words & _PHRASES_BY_HINT.keys() for place in _PHRASES_BY_HINT[word]}
    ):
        _, pattern, replacement = _PHRASES[place]
        text = pattern.sub(replacement, text)
    return write_out(text, words)


def read_words(text: str) -> tuple[list[TypedWord], str, bool]:
    """Return the words of a sentence, its expanded text, and whether it can be a plain claim.

    The text has its contractions expanded. In the words, each phrase is replaced by one word, and
    homographs are replaced according to the language of the sentence.
    """
    plain, claim = _normalise(text)
    words = split_words(_rewrite(plain))
    if any(word.text in lexicon.FOREIGN for word in words):
        words = [
            word
            if word.text.isupper()
            else word._replace(low=lexicon.HOMOGRAPHS.get(word.low, word.low))
            for word in words
        ]
    return words, plain, claim
