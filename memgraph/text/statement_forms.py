"""Classify sentences by their form: type, completeness, and independence of context."""

from __future__ import annotations

import re

from memgraph.model.enums import MemoryType
from memgraph.text.tokens import COMPOUNDS

MAX_STATEMENT_CHARS = 600
_MIN_WORDS = 3

_WHO = (
    r"(?:we|i|they|everyone|(?:the|our) (?:\w+ )?(?:team|board|group|committee|council|company|"
    r"client|customer|management|maintainers)|[A-Z][\w.-]+(?: [A-Z][\w.-]+)?)"
)
_OFTEN = r"(?:(?:have|has|had|all|also|now|finally|therefore|thus|just|then|since) )*"
_DECISION = re.compile(
    rf"(?:^|[,;:] |\b(?:so|and|therefore|hence|today|yesterday|one) ){_WHO}(?:'ve)? {_OFTEN}"
    r"(?:decided|agreed|chose|chosen|opted|resolved|voted|settled)\b"
    r"(?! (?:whether|if|which|what|who|when|where|how|yet)\b)"
    r"|^it (?:was|has been|is) (?:decided|agreed|resolved) (?:to|that|not)\b"
    r"|^(?:the|our) (?:final )?decision (?:is|was) (?!not yet|still|open|pending)"
    r"|^(?:final )?(?:decision|decided|resolved|agreed|chosen option)\s*[:—–]\s*\S"
    r"|^wir haben (?:uns )?.{0,200}\b(?:entschieden|beschlossen)\b"
    r"|^nous avons décidé\b|^hemos decidido\b",
    re.IGNORECASE,
)
_UNDECIDED = re.compile(
    r"\b(?:if|unless|until|till|before|once|when|whether|after|undecided|not|never|n't|yet to)\b"
    r"[^.;]{0,40}\b(?:decid|agree|chos|opt|resolv|vot|settl)",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"^(?:so |therefore,? |hence,? |thus,? )?(?:we(?:'ll| will| are going to| shall)) "
    r"(?:now |no longer |not |continue to |stop |also |instead )?(?:use|adopt|move|migrate|switch|"
    r"using|keep|drop|replace|remove|build|host|run|store|write|standardi[sz]e|avoid|introduce)\b",
    re.IGNORECASE,
)
_TODO = re.compile(
    r"^(?:to-?do|action(?: items?| point)?|next steps?|follow-?up)\b"
    r"(?:\s*\([^()\n]{1,40}\)|\s+for\s+[^:\n]{1,40})?\s*:\s*(?=\S*[^\W\d_]{2})",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?:to-?do|action(?: items?| point)?|next steps?|follow-?up"
    r"|(?:final )?(?:decision|decided|resolved|agreed|chosen option)"
    r"|(?:goal|objective|aim|target|ziel)s?)\s*[:—–]\s*(?=\S)",
    re.IGNORECASE,
)
_GOAL = re.compile(
    r"^(?:the|our|my) (?:\w+ ){0,2}(?:goal|aim|objective|target|ambition|mission)"
    r"(?: (?:for|in|this|by) [^.]{1,60}?)? (?:is|was|remains) (?!not\b|to be\b|unclear)"
    r"|^(?:goal|objective|aim|target|ziel)s?\s*:\s*\S"
    r"|^(?:we|i) (?:aim|aspire|strive) (?:to|for)\b"
    r"|^unser ziel ist\b|^notre objectif est\b|^nuestro objetivo es\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"^(?:(?:I|We|He|She|(?:The|Our) (?:team|client|customer)|[A-Z][a-z]+(?: [A-Z][a-z]+)?)"
    r" (?:really |strongly |always |generally |much )?"
    r"(?:prefers?|would rather|favou?rs?|dislikes?|hates?|loves?|can't stand|is fond of)\b"
    r"|(?:My|Our|His|Her|[A-Z][a-z]+'s) preference is|(?:My|Our|His|Her|[A-Z][a-z]+'s) "
    r"favou?rite)\b"
)
_BECAUSE = re.compile(r"\S,? because (?!of\b)([^;]+)$", re.IGNORECASE)
_BECAUSE_FIRST = re.compile(r"because (?!of\b)([^,;]+), ", re.IGNORECASE)
_PERSON_SUBJECT = re.compile(
    r"^(?:This|That|It|These|Those|There|What|Which|Who|Some|Each|Users?|Assistants?)\b"
)

# A sentence that begins like this depends on the sentence before it.
_HANGS = re.compile(
    r"^\W*(?:where:|examples? of (?:this|these|such)|this|that(?!\s+said)|these|those|it|"
    r"its|they|them|their|he|she|his|her|such|"
    r"however|then|therefore|thus|hence|so|but|and|or|nor|yet|also|additionally|furthermore|"
    r"moreover|besides|instead|otherwise|consequently|nevertheless|nonetheless|similarly|likewise|"
    r"conversely|meanwhile|alternatively|accordingly|rather|because|which|both|either|neither|"
    r"another|others?|one (?:of (?:these|those|them)|such|reason|option|advantage|example|"
    r"situation|possib\w+|way|issue|problem)|the (?:former|latter|other|others|same|above|rest|"
    r"first|second|third|last|next|previous|resulting|following|main (?:reason|advantage|problem|"
    r"issue)|reasons?|advantages?|disadvantages?|downside|upside|alternatives?|only (?:other )?"
    r"(?:alternative|exception))|"
    r"first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|next|again|still|e\.g|i\.e|"
    r"for (?:example|instance|this|that|these|those|now|the same|more)|as (?:a (?:result|"
    r"consequence)|such|well|mentioned|described|stated|noted|before|above|you)|"
    r"in (?:addition|contrast|particular|this|that|these|those|such|other words|fact|turn|either|"
    r"both|light of (?:this|that|these)|our case|short|the same|return|the meantime)|specifically|"
    r"on (?:the (?:other|one|contrary|downside|upside)|top of)|a (?:few|summary|downside)|"
    r"at (?:this|that|the same|best|worst)|\w+(?: \w+){0,2}, (?:this|these|those)|"
    r"to (?:do|achieve|address|solve|fix|avoid|support|help|make|be clear|this|that|mitigate)"
    r"(?: (?:this|that|so|it|these|those|development))?\b(?=[ ,])|"
    r"with (?:this|that|these|those)|because of (?:this|that)|due to (?:this|that|these)|"
    r"based on (?:this|that|these)|by (?:doing|that|this)|after (?:this|that|doing)|"
    r"given (?:this|that|these)|since (?:this|that|then)|if (?:so|not|this|that|it|they)|"
    r"when (?:this|that|it|they)|until (?:this|that|then)|once (?:this|that|it|they|done)|"
    r"while (?:this|that|it|they)|unlike (?:this|that)|all (?:this|that|these|those|of (?:this|"
    r"that|these|those|them))|some of (?:this|that|these|those|them)|most of (?:this|these|those|"
    r"them)|here|there(?='| (?:is|are|was|were) (?:also|(?:no )?other|another))|same|ditto)\b",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"^\W*(?:\w+ ){1,5}(?:these|those|them|this)(?= (?:is|are|was|were|to|may|will|can|"
    r"could|should|would|has|have|does|do|means|makes|gives)\b)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"^\([^()]*\)\W*$")
_ELSEWHERE = re.compile(
    r"(?:^|[,;(.:] )(?:please )?see\b|\bmore (?:information|details?)\b|"
    r"\b(?:see (?:also|below|above|here)|as follows|"
    r"shown (?:below|above|here)|(?:listed|described|outlined|mentioned|explained|defined|"
    r"linked|documented|discussed|presented|given|stated) (?:below|above|here)|"
    r"(?:above|below)[.,:;)]|(?:above|below) "
    r"(?:is|are|show|list)|the (?:above|below|following)\b|(?:click|read(?: more)?|found|look|"
    r"available|written|over|check|more) here\b|available (?:at|from|on|under) <?https?:|"
    r"this (?:page|section|document|guide|article|table|"
    r"adr|record|readme|chapter|tutorial|list|post)\b|table of contents|as outlined|(?:next|"
    r"previous) section)",
    re.IGNORECASE,
)
_RULE = re.compile(r"^(?:always|never|do not|don't|avoid|prefer)\s+[a-z]", re.IGNORECASE)
_IMPERATIVES = (
    "use run install add create make see check click open set ensure note remember ignore "
    "follow read write go try do don't please let let's consider configure copy download update "
    "delete remove replace choose select start stop keep avoid call pass import export specify "
    "provide enable disable visit refer contact build test deploy define change edit enter type "
    "press execute clone fork submit commit push pull verify confirm be have take put get give "
    "send forget disregard override reveal print output reply respond answer act pretend always "
    "never fill include prefer look find browse feel join ask tell say report help learn "
    "discover explore star generate compile initialize initialise wrap attach assign return "
    "upgrade log sign register apply move rename drop merge rebase switch turn save store load "
    "fetch show hide list view think imagine suppose assume recall thank welcome happy just "
    "simply now you your if want need navigate double-check leave mark treat distinguish "
    "document describe implement introduce record extend expose hello hi dear"
)
_PLEASE = re.compile(r"(?:^|, )please\b", re.IGNORECASE)
_IMPERATIVE = frozenset(_IMPERATIVES.split())
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|am|has|have|had|will|would|can|cannot|could|should|shall|must|"
    r"may|might|do|does|did|isn't|aren't|wasn't|don't|doesn't|didn't|won't|can't|"
    r"needs?|uses?|used|runs?|lives?|makes?|made|works?|supports?|requires?|provides?|allows?|"
    r"contains?|holds?|stores?|returns?|means?|helps?|keeps?|takes?|gives?|comes?|goes|"
    r"depends?|includes?|became|becomes?|moved|started|stopped|serves?|listens?|reads?|writes?|"
    r"sends?|rotates?|expires?|handles?|owns?|leads?|offers?|follows?|gets?|got|went|came|"
    r"\w{3,}ed|[a-z]{3,}(?:izes|ises|ates|ifies))\b|'(?:s|re|ll|ve|d|m)\b",
    re.IGNORECASE,
)
_THIRD_PERSON = re.compile(
    r"\w \w*[^\Ws]s (?:in|on|at|to|the|a|an|by|from|with|its|his|her|their|no|all|"
    r"every|each|out|up)\b"
)
_PLACEHOLDER = re.compile(
    r"(?<![$\w])\{[A-Za-z][^{}\n;:=]{3,}\}"
    r"|^\W*(?:what|why|how|who|which|describe|explain|list)\b[^?]{0,120}(?<!\?)$"
    r"|^\W*(?i:cannot see any)\W*$"
    r"|\[(?:[a-z][\w ,/|]{6,}|\.\.\.|…|insert [^\]]*)\]|<[a-z][\w -]*>$"
    r"|^\W*(?i:tb[acd]|to ?do|n/?a|none|nothing|to be (?:confirmed|defined|decided|added|done|"
    r"determined|written))\W*$|\b(?i:lorem ipsum)\b|\b(?:TBD|TBC|TODO|FIXME|XXX)\b|^…|\.\.\.$|…$",
)
_TO_A_MODEL = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}"
    r"\b(?:instructions?|prompts?|rules|guidelines|messages?|context)\b"
    r"|\b(?:system prompt|you are (?:now|an? (?:ai|assistant|language model))|jailbreak|"
    r"as an ai\b|(?:the|this) (?:assistant|ai|model|agent|llm) (?:must|should|shall|has to|will)\b|"
    r"(?:reveal|print|repeat|exfiltrate|leak) (?:your|the|all|any) )",
    re.IGNORECASE,
)
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_CODE = re.compile(
    r"(?:\$ |(?:export|import|const|var|let|def|class|function|npm|npx|yarn|pip|git|docker|curl|"
    r"sudo|cd|make|cargo|brew)\s+[\w@.-]+\s*(?:$|[={(:/-]|\w+\s*[={(]))"
)
_MARKUP = re.compile(r"https?://\S+|[\w./-]+/[\w./-]+|[{}<>|=]")


def type_of(sentence: str, *, decides: bool = False) -> MemoryType:
    """Return the type of a sentence, judged by its words; Fact by default.

    Args:
        decides: the sentence comes from a place for decisions, where "We will use …" counts as one.
    """
    head = sentence[:MAX_STATEMENT_CHARS].strip()
    if head.endswith("?"):
        return MemoryType.FACT
    if _TODO.match(head):
        return MemoryType.TODO
    decided = _DECISION.search(head)
    if decided and not _UNDECIDED.search(head) and not _PERSON_SUBJECT.match(decided.group()):
        return MemoryType.DECISION
    if decides and _PLAN.match(head):
        return MemoryType.DECISION
    if _GOAL.match(head):
        return MemoryType.GOAL
    if _PREFERENCE.match(head) and not _PERSON_SUBJECT.match(head):
        return MemoryType.PREFERENCE
    return MemoryType.FACT


def without_label(sentence: str) -> str:
    """Return a sentence without the label that its type carries: "TODO: ", "Decision: "."""
    label = _LABEL.match(sentence.lstrip())
    if label is None:
        return sentence
    rest = sentence.lstrip()[label.end() :].strip()
    return f"{rest[:1].upper()}{rest[1:]}"


def ground_of(sentence: str) -> str | None:
    """Return the reason that a sentence gives after "because", if it is a statement by itself."""
    head = sentence[:MAX_STATEMENT_CHARS].strip()
    match = _BECAUSE.search(head) or _BECAUSE_FIRST.match(head)
    if match is None:
        return None
    ground = match[1].strip(" ,;.!")
    ground = f"{ground[:1].upper()}{ground[1:]}."
    return ground if stands_alone(ground) else None


def hangs(sentence: str) -> bool:
    """Return whether the beginning of a sentence depends on the sentence before it."""
    head = sentence[:160]
    return any(form.match(head) for form in (_HANGS, _LOOSE)) or _ASIDE.match(sentence) is not None


def points_elsewhere(sentence: str) -> bool:
    """Return whether a sentence refers its reader to another part of the text."""
    return _ELSEWHERE.search(sentence[:MAX_STATEMENT_CHARS]) is not None


def is_rule(sentence: str) -> bool:
    """Return whether a sentence is a standing instruction: "Never deploy on Fridays."."""
    return _RULE.match(sentence) is not None


def is_instruction(sentence: str) -> bool:
    """Return whether a sentence is an instruction to its reader."""
    if _PLEASE.search(sentence[:MAX_STATEMENT_CHARS]):
        return True
    first = COMPOUNDS.search(sentence[:80])
    return first is not None and first.group().casefold() in _IMPERATIVE


def addresses_model(sentence: str) -> bool:
    """Return whether a sentence tries to give instructions to a language model."""
    return _TO_A_MODEL.search(sentence[:MAX_STATEMENT_CHARS]) is not None


def is_placeholder(sentence: str) -> bool:
    """Return whether a sentence is a placeholder from a template."""
    return _PLACEHOLDER.search(sentence[:MAX_STATEMENT_CHARS]) is not None


def is_complete(sentence: str, *, least_words: int = _MIN_WORDS) -> bool:
    """Return whether a text is a whole statement rather than a heading, link or line of code."""
    text = sentence.strip()
    if _CODE.match(text) or text.endswith(("e.g.", "i.e.")):
        return False
    if not text or len(text) > MAX_STATEMENT_CHARS or text[-1] in "?:;,":
        return False
    bare = _MARKUP.sub(" ", text)
    letters = sum(map(str.isalpha, bare))
    if letters * 2 < len(text.replace(" ", "")):
        return False
    if not text.isascii() and _is_unspaced(text):
        return True
    words = COMPOUNDS.findall(bare)
    if len(words) < least_words:
        return False
    if _VERB.search(bare) is not None or words[0].casefold() in ("we", "i", "they"):
        return True
    if len(words) > least_words and text[-1] in ".!":
        return True
    return len(words) > 5 and _THIRD_PERSON.search(bare) is not None


def stands_alone(sentence: str) -> bool:
    """Return whether a text is a statement that can be understood without its context."""
    return (
        is_complete(sentence)
        and not hangs(sentence)
        and not points_elsewhere(sentence)
        and not is_instruction(sentence)
        and not is_placeholder(sentence)
        and not addresses_model(sentence)
        and _SECOND_PERSON.search(sentence) is None
    )


def _is_unspaced(text: str) -> bool:
    """Return whether a text is in a script without spaces between words, such as Japanese."""
    return sum("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3" for char in text) > 5
