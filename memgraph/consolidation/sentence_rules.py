"""Decide whether a sentence of a conversation is a fact, of which type, and how telling it is.

A sentence is kept as it was said: nothing here rewrites it. ``statements_of`` cuts a turn into
sentences that may be quoted. ``judge`` leaves out what is no statement or needs another sentence
to be understood, and scores the rest: what somebody says of their own life, plans, people and
things scores by its form; names, numbers, dates and things add to it; feelings, hedges and vague
words take from it. English only: a sentence in another language stays in its turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from memgraph.entities.gazetteer import gazetteer
from memgraph.model.enums import MemoryType
from memgraph.model.speaking import Voice
from memgraph.policy.sentences import split_sentences

MIN_SCORE: Final = 3
MAX_TURN_CHARS: Final = 16_000
MIN_WORDS: Final = 4
MAX_WORDS: Final = 45
MAX_SENTENCE_CHARS: Final = 400
# What a form alone scores: "I live in …", "I prefer …", "We never …".
STATED: Final = 2
# The share of its words that makes a sentence a repetition of an earlier one.
MIN_REPEATED: Final = 0.8


def _any(text: str) -> str:
    """Return a pattern of alternatives, without the blanks around each bar."""
    return "(?:" + re.sub(r" *\| *", "|", " ".join(text.split())) + ")"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(_any(text))


_WORD: Final = re.compile(r"[^\W_]+(?:['’.+/:-][^\W_]+)*+")
_FIRST: Final = r"(?:(?:i|we)(?:'(?:m|ve|d|ll|re))?|im|ive)"
_ADVERBS: Final = _any(
    r"""really | also | just | still | always | finally | recently | actually | definitely |
    usually | currently | even | only | already | both | all | never | eventually | now |
    often | mostly | mainly | sometimes | absolutely | totally | kinda | officially | probably |
    basically | personally | originally | generally | once | so | very"""
)
_ADVERB: Final = rf"(?:{_ADVERBS} )*"
_I: Final = rf"(?<!what )(?<!how )(?<!that )\b{_FIRST} {_ADVERB}"
# The subject of the sentence as a whole; at most one short phrase stands before it.
_MAIN: Final = rf"^(?:[\w' ]{{1,40}}, |(?:last|this|yesterday|today) (?:\w+ )?)?{_FIRST} {_ADVERB}"
_PERIOD: Final = _any(
    "week | weekend | month | year | morning | afternoon | evening | night | summer | winter |"
    " spring | autumn | fall | semester | quarter | sprint"
)
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH: Final = (
    r"(?:january|february|march|april|june|july|august|september|october|november|december|"
    r"jan|feb|aug|sept?|oct|nov|dec)"
)

# --- What of a turn may be quoted ---------------------------------------------------------------

_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)")
# Quoted lines, lists, links, code.
_NOT_SAID: Final = re.compile(
    r"^\s*(?:[>|#]|[-*+•]\s|\d{1,3}[.)]\s|\S+://\S+\s*$|[$%]\s|[{}\[\]<])"
    r"|[;{}=]\s*$|=>|==|\)\s*:\s*$|</|\w\(\w*\)|[\w)] = [\w(\"']|\\[(\[]"
    r"|^\s*(?:def|class|import|from|return|function|const|let|var|SELECT|INSERT)\b.*[({;=]"
)
_STAGE: Final = re.compile(r"\[[^\[\]]{0,400}\]|(?<!\*)\*[^*\n]{1,200}\*(?!\*)")
_OPENERS: Final = _any(
    r"""hey | hi | hello | yo | yeah | yep | yup | yes | no | nope | oh(?: yeah)? | wow | whoa |
    well | so | and | but | also | plus | btw | by the way | actually | anyways? | haha | lol |
    thanks? | thank you | sorry | ok | okay | sure | fyi | right | true | cool | nice | great |
    awesome | absolutely | definitely | exactly | totally | hmm | um | ah | aww? | man |
    guess what | to be honest | honestly | for sure | of course | in fact | i mean | you know |
    sounds good | however | correction | update | got it | (?:please )?remember that |
    just so you know"""
)
_OPENER: Final = re.compile(
    rf"(?:(?:and |oh |but )?{_OPENERS}(?: (?-i:[A-Z])\w+)?\s*(?:[,!.:…]+|\s[-–—])\s*"
    r"|(?:and|but|so|also|plus|oh and|btw|or|then|actually|well|yeah|now)\s+"
    r"(?=(?:i|we|my|our|the)\b|(?:i|we)['’])"
    r"|(?:please )?(?:remember|note) that\s+|\(\d{4}-\d\d-\d\d\)\s*"
    r"|[^,;–—-]{0,40}\bsince (?:we|our|the) (?:last )?(?:\w+ )?"
    r"(?:talk|talked|spoke|chat|chatted|met|time|conversation)\s*[,–—-]+\s*)",
    re.IGNORECASE,
)
# A question or a call for help at the end of a statement: "…, can you help me with that?"
_ASKS: Final = _any(
    r"""i(?:'m|\swas|\sam) (?:just |still |kinda |also )?(?:wondering|not sure|unsure|curious|
    looking for|struggling|stuck|having (?:some |a little )?(?:trouble|issue|problem|
    difficult)| getting (?:some|this|an?|stuck)|running into) |
    i (?:need|want|would like|could use) (?:some |your )?(?:help|advice|tips|guidance)\b |
    i want to (?:make sure|know|understand|see|ensure) |
    i'?d (?:like|love) to (?:know|hear|see|get) |
    (?:can|could|would|will|should|do|does|did|is|are|was|were) (?:you|i|we|it|that|this|there|
    the|my|anyone)\b |
    (?:what|how|why|where|which)(?:'s|\s(?:is|are|do|does|can|could|should|would|might|else|if|
    about|am|were|did|exactly|to|long|much|many|\w+ (?:can|should|could|do|would|are))\b) |
    any (?:\w+ )?(?:tips|advice|ideas|suggestions|chance|recommendations|thoughts) | please\b |
    right\? | here'?s (?:my|what|an?|the)\b"""
)
_REQUEST: Final = re.compile(
    rf"(?:\s*[,;]|\s[-–—]+)\s+(?:(?:and|so|but|or|then|now|maybe|like)\s+)*{_ASKS}"
)
# How it felt, said after a dash or a comma.
_AFTERTHOUGHT: Final = re.compile(
    r"(?:\s+[-–—]+\s*|\s*—\s*|\s*[,;]\s+(?:and |but |so )?|\s+(?:and|but) )"
    r"(?:it|that|this|they|which|everything|such|what|so)\b(?=[^,;]{0,90}$)"
    r"(?:['’]s|['’]re|\s+(?:is|are|was|were|has|feels?|felt|made|makes|looks?|means|really|"
    r"an?|been|"
    r"cool|fun|much|great))\b.*$",
    re.IGNORECASE,
)


def statements_of(content: str, speakers: Collection[str] = ()) -> Iterator[str]:
    """Yield the sentences of a turn that may be quoted, each a contiguous part of it.

    Code, quoted lines, lists, links and stage directions are skipped. Cut off is what only opens a
    sentence ("Yeah, …"), the name of one of ``speakers`` who is addressed, a call for help at its
    end, and how something felt.
    """
    fenced = False
    for line in content[:MAX_TURN_CHARS].splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not _NOT_SAID.search(line[:2_000]):
            for part in _STAGE.split(line):
                for sentence in split_sentences(" ".join(part.split())):
                    if text := _trimmed(sentence, speakers):
                        yield text


def _trimmed(sentence: str, speakers: Collection[str]) -> str:
    if len(sentence) > 4 * MAX_SENTENCE_CHARS:
        return ""
    text = sentence.lstrip(" ,.!…-–—:;*")
    for _ in range(4):
        opener = _OPENER.match(text)
        called, comma, rest = text.partition(", ")
        if opener is not None:
            text = text[opener.end() :]
        elif comma and called in speakers:
            text = rest
        else:
            break
    head, comma, called = text.rstrip(".!").rpartition(", ")
    if comma and called in speakers:
        text = head
    request = _REQUEST.search(_plain(text), 12)
    if request is not None and (text.endswith("?") or request.start() > 20):
        text = text[: request.start()]
    after = _AFTERTHOUGHT.search(text, 16)
    return (text if after is None else text[: after.start()]).strip()


# --- What is no statement, or needs another sentence to be understood ---------------------------

_NO_SUBJECTS: Final = _any(
    r"""(?:it|that|they|he|she|there|what|those|these|here)(?:'(?:s|re|ve|ll|d))? | its | them |
    their | his | her | him | which | who | whose | where | why | how | whatever | whoever |
    if | unless | whether | like | unlike | same | such | another | both | neither | either |
    one | some | something | someone | everything | nothing | anything | everyone | everybody |
    anyone | people | (?:you|y'all|u)(?:'(?:re|ve|ll|d))? | your | ya | let(?:'?s)? | imagine |
    especially | though | because | '?cause | cuz | cos | not | so | too | very | super | more |
    sounds | looks | seems | feels | good | glad | happy | love | loving | thanks? |
    congrat\w* | wish | wishing | hope | hoping | please | nice | great | wow | can'?t |
    couldn't | don'?t | no | yes | best | keep | take | have | see | talk | check | look | go |
    be | try | make | give | for me | (?:about |around )?(?:once|twice|(?:two|three|four|five|
    \d+) times) (?:an?|per|each|every) | remember | appreciate | excited | proud | welcome | way |
    long |
    maybe | perhaps | first | second | third | note | when (?!i\b|i'|we\b|we'|my|our)"""
)
_HANGS: Final = re.compile(rf"{_NO_SUBJECTS}\b")
_TIME_HEAD: Final = re.compile(
    rf"(?:this|that|these|one|next|last|first|some|no) (?:{_PERIOD}|time|days?|of (?:my|our))\b"
)
_HALF: Final = re.compile(
    r"\b(?:to|too|of|with|and|so|though|yet|either|do|did|am|was|are|again|then)[.!\s]*$"
    r"|\b(?:felt|did|do|love|like|want|got|get|see|said|had|have) (?:it|that|this|those)[.!\s]*$"
    r"|^(?:since|when|as|because|after|before|until|while|where|which)\b[^,]*$"
    r"|^\w+ (?:years|months|weeks|days) (?:now|already|ago)\b"
)
_MEANT: Final = _any(
    r"""agree | understand | know (?:how|what|it|that|you|right|i) | see | hear you | bet | guess |
    hope | promise | swear | appreciate | admire | wish | feel you | get (?:it|that) |
    got (?:it|this|you) | believe | trust you |
    (?:love|like) (?:it|that|this|how|you|your|having) | wonder | suppose | recommend |
    suggest | look forward | feel like | mean | do too | did too |
    all (?:have|need|deserve|want|are) | are all | each have"""
)
_MOOD: Final = _any(
    r"""glad | sorry | proud | happy (?:for|to (?:hear|see|help|be)) | here (?:for|to) | rooting |
    cheering | jealous | impressed | with you | up for | down for | all (?:for|ears) | sure |
    not sure | unsure | wondering | curious | confused | lucky | blessed | grateful | thankful |
    stoked | thrilled | pumped | determined | ready | looking forward | confident | certain |
    fine | excited (?:to (?:hear|see|share|show)|for you|about (?:it|that|this)) | good |
    great | okay | ok | doing | well | in awe | in\b | speechless | on it | off to | done |
    back | swamped | inspired | starting to (?:realize|feel|think|see) | stuck | struggling |
    kidding | tired | exhausted | (?:really )?stressed | getting (?:this|an?|the) error |
    having (?:some )?(?:trouble|issues|problems|a hard time) |
    (?:only |kinda )?(?:trying|looking|hoping|wanting|working) to (?:understand|figure|find out|
    see| know|make sense|calculate|verify|confirm|debug|get|stay|keep|think|remember|be|decide|
    learn how|(?:fix|troubleshoot|detect|address)\b(?!.*, (?:and |but )?i))"""
)
_TALK: Final = re.compile(
    rf"{_FIRST} {_ADVERB}(?:"
    r"(?:do|did|am|was|have|are|can|will)(?:n't)?\s*(?:[-–,.!]|$)"
    rf"|(?:(?:can(?:'t|not)?|could(?:n't)?|do(?:n't)?|would) (?:\w+ )?)?{_MEANT}\b|(?:am |"
    rf"are )?{_MOOD}\b"
    r"|can(?:'t|not)? (?:\w+ )?(?:imagine|tell|wait|thank|ask|help|relate|complain|share|show|"
    r"explain)\b"
    r"|(?:can|could|should|need to|must|gotta|have to) (?:all |also |just |always |"
    r"both )?(?:do (?:it|"
    r"this|that)|make it|get through|keep|remember|stay|tackle|be (?:proud|kind|there)|learn from|"
    r"support|create|build|inspire|achieve|overcome|face)\b"
    r"|want to (?:make sure|know|understand|see|hear|thank|say|confirm|ensure|get a)\b)"
    rf"|(?:(?:i|we)(?:'ll| will| won't)|{_FIRST} (?:gonna|"
    rf"(?:not )?going to)) {_ADVERB}(?:give up|let you|keep|"
    r"do (?:my|our|that|it)|try|be (?:there|here|sure|right|back|okay|fine)|check|make (?:it|sure)|"
    r"get through|see you|give it|take (?:a look|that|it)|stay|look into|go through|start with|"
    r"think about|miss|send|share|pass)\b"
)
# An intention or an offer of the moment; a plan with a date is none.
_FLEETING: Final = re.compile(
    r"(?:[\w' ]{1,40}, |(?:then|next|today|tomorrow) )?(?:i think )?(?:i|we)"
    rf"(?:(?:'ll| will) (?!never\b|always\b)|(?:'d| would) {_ADVERB}(?:like|love) to\b)"
    r"|(?:next|first|then),? (?:i|we)\b"
)
_NOW: Final = _pattern(
    r"""\b(?:i|we)(?:'ll| will) {_ADVERB}(?:reach out|go with|start with|create|recommend)\b |
    \blend a hand\b | \bif i could\b | \b(?:highly|would|i'd) (?:recommend|suggest)\b | \bi mean\b |
    \btaking (?:the|this|a) (?:\w+ )?(?:weekend|day|week|evening) off\b |
    \bbeen (?:such )?a (?:long )?while since\b |
    \b(?:i've|i have|i) (?:also |simply |just )?(?:tried|heard)\b""".replace("{_ADVERB}", _ADVERB)
)
_DATED: Final = re.compile(
    rf"\b(?:{_WEEKDAY}|{_MONTH}|may \d+|tomorrow|20\d\d|\d+(?:st|nd|rd|th)|christmas|easter)\b"
)
_TALKED: Final = re.compile(
    r"\bsince (?:we|our|the|i) (?:last )?(?:\w+ )?(?:talk(?:ed)?|spoke|chat(?:ted)?|met|time|"
    r"conversation|saw)\b|\blast (?:time we|talk|chat)\b"
)
# Feelings and virtues that are everyone's; kept beside a name or a number.
_VIRTUE: Final = _pattern(
    r"""\boverwhelmed by\b | \btak(?:e|ing) time (?:to|for) | \bfind(?:ing)? (?:\w+ )?balance\b |
    \b(?:difference|impact) (?:i|we|in)\b | \bmak(?:e|ing) an? (?:\w+ )?(?:difference|impact)\b |
    \bothers (?:don't|do|have)\b | \b(?:help(?:ing)?|support(?:ing)?|inspir(?:e|ing)|
    give|giving back to) (?:\w+ )?(?:others|people|the community|everyone|my community)\b |
    \b(?:true to|believe in) (?:myself|ourselves)\b |
    \bauthentically\b | \bfull potential\b | \bmeans? (?:a lot|so much|the world|everything)\b |
    \bstay(?:ing)? (?:\w+ and )?(?:motivated|positive|true|strong)\b |
    \bno matter what\b | \b(?:won't|never) (?:quit|give up)\b | \bliving (?:my|the|our) dream\b |
    \b(?:chas|follow)\w* (?:my|our) (?:dream|ambition|passion)s?\b |
    \b(?:lot of|so much) (?:significance|meaning)\b |
    \bi (?:love|like|enjoy) (?:being|having|seeing|feeling|how)\b |
    \b(?:love|like|adore) (?:the|its|all the) (?:\w+ )?(?:colou?rs?|textures?|design|details?|
    looks?|vibes?|patterns?|idea|energy|atmosphere|sound|style|shapes?|feel|message|smell|
    softness)\b(?! (?:of|in|on)\b)"""
)
# News that leave out what happened; kept where the sentence goes on to name it.
_CLAUSE: Final = re.compile(r"(?<=.{15})(?:,| [-–—] | '?cause | because | so )")
_NEWS: Final = re.compile(
    r"\b(?:an?|some|such|quite|few|off to) (?:(?!last |next |this )[\w'-]+ ){0,3}"
    r"(?:times?|incidents?|setbacks?|adventures?|experiences?|news|rides?|"
    r"roller ?coaster|things?|stuff|changes|progress|challenges?|obstacles?|opportunit(?:y|ies)|"
    r"surprises?|moments?|chapter|journey|start|response|advice)\b"
    r"|\b(?:an?|such|quite) (?!half )[\w'-]+ (?:week|day|month|year)\b"
    r"|\b(?:was|were|been) (?:\w+ )?(?:wild|busy|crazy|hectic|exciting)\b"
)
_BLAND: Final = _words(
    """week weekend month year years time times incident setback adventure experience news ride
    progress changes chapter start started starting response wild busy hectic unexpected bad spoke
    talked chatted recently lately pretty quite while last met some hit going since had quite such
    exciting planned happened back after happen rollercoaster coaster roller"""
)
# Between those who talk, about the talk itself, or orders to whoever keeps the memory.
_HEARD: Final = _pattern(
    r"""\b(?:let|keep) (?:me|you|ya) (?:know|posted|updated)\b | \bhappened since\b |
    \bhaven't (?:talked|spoken|chatted)\b | \bcan't wait\b |
    \bmy (?:error|question|guess|point|bad|pleasure|(?:current )?(?:implementation|code))\b |
    \bthe following\b | \bso far:$ | \blanguage model\b | \brole ?play\b |
    ^(?:system|assistant|developer|tool|user|instructions?)\s*: |
    \b(?:ignore|disregard|forget|override|bypass|delete|erase|wipe|retract|reveal|overwrite|
    purge| supersede|store|save|resolve|promote|obey)\b.{0,60}\b(?:instructions?|prompts?|
    memor(?:y|ies)| everything|rules?|guidelines|previous|above|facts?|conversation|database|
    confidence|importance)\b | \b(?:confidence|importance)\b.{0,20}\b1 |
    <\|?/?(?:system|im_start|im_end) | \[/?inst\] |
    \b(?:system prompt|jailbreak|previous instructions|memory_id|tool_call|developer mode)\b |
    \binstructions? (?:for|to) the (?:assistant|agent|memory|model|ai)\b | \byou are now\b"""
)
_YOU: Final = re.compile(r"\b(?:you(?:'(?:re|ve|ll|d))?|yours?|yourself|ya|y'all|u)\b")
_PRONOUN: Final = re.compile(
    r"\b(?:it|its|it's|that's|this|them|they|they're|they've|their|he|she|him|her|his|hers|"
    r"he's|she's|"
    r"these|those|ones?|there|here|theirs|that(?= (?:is|was|day|time|one|night|yesterday|"
    r"today)\b|[.,!?]|$))\b"
)
_POINTS_AT_NOUN: Final = re.compile(
    rf"\b(?:this|these|those) (?:{_PERIOD}|coming|past|days)\b|\bthere (?:is|are|was|were)\b"
    r"|\bthose (?:with|who)\b"
    r"|\bone (?:of|day|night|year|week|month|hour)\b|\bit (?:is|was|takes|took)\b"
)
_ANTECEDENT: Final = re.compile(
    r"\b(?:an?|the|my|our|some|two|three|four|several|many|every|each|no|any|\d+) (?!lot\b|"
    r"bit\b|few\b)"
    r"[\w-]{2,}|(?<=\w )[A-Z]\w+|\b(?!was\b|has\b|does\b|yes\b|this\b|always\b|sometimes\b)"
    r"\w{3,}(?<!s)s\b|^\w+ing\b"
)
# A quantity or a place that only what was said before can fill: "I bought a few more there."
_STOPS: Final = (
    r"(?=[.,!;]|$| (?:at|in|from|with|for|to|on|and|but|today|tomorrow|yesterday|last|next|this|"
    r"when|because|if|myself|already|as)\b)"
)
_UNFILLED: Final = re.compile(
    rf"\b(?:(?:a few|few|a couple|some|two|three|\d) more|a few|a couple){_STOPS}"
    r"|\b(?:brainstorm\w*|got|get|bought|made|have|had|take|took|want|need|tried|see|saw|ordered|"
    r"hold|holding|include|about|do|think|say|did|believe|added) (?:it|this|that|these|those|them|"
    rf"one|ones|some|more|any|both|all|enough|two|three|so|another|others){_STOPS}"
    r"|\b(?:that|this|the) same \w+|\b(?:exactly|just) what (?:i|we) (?:need|want|was|were)"
    r"|\b(?:at|in|from|to|during) (?:the|this|that) (?:event|place|venue|show|beginning)[.,!]?$"
)
_FORMULA: Final = re.compile(r"=|[≈∩∪√×]|\d/\d+(?!\d*/)|\\\w|\bp\(|\w_\w+\(|\*\*")

# --- What a sentence is by its form -------------------------------------------------------------

_DEEDS: Final = _any(
    r"""call | book | buy | send | e-?mail | submit | finish | renew | pick up | pay | schedule |
    fix | write | prepare | review | order | file | register | sign | update | deploy | merge |
    return | clean | pack | apply | cancel | contact | reply | ship | upload | print | repair |
    replace | collect | drop off | fill | complete | arrange | rotate | migrate | reschedule |
    invite | deliver | hand in | bring | visit | see (?:the|a|my) (?:doctor|dentist) | set up |
    talk to | get (?:a|an|my|the|some) (?!better|good|sense|
    hang|idea|feel) | find an? (?!\w* ?way) | check (?:the|my|our|with) | ask"""
)
_CUES: Final[tuple[tuple[MemoryType, re.Pattern[str]], ...]] = (
    (
        MemoryType.DECISION,
        re.compile(
            rf"{_I}(?:have |am |are )?(?:decided|agreed) (?:to|on|that|against|not|with)\b"
            rf"|{_I}(?:have )?(?:settled on|opted (?:for|to)|ruled out|finalized|"
            rf"made up (?:my|our) minds?)\b"
            rf"|{_I}(?:have )?(?:chose|chosen|picked) (?!it|them|that|this|up)[^.]{{2,60}}"
            r" (?:over|instead|because|since|as|for|'cause)\b"
            rf"|{_I}(?:am |are )?(?:going|sticking) with\b(?! (?:my|the flow|him|her|them))"
            r"|^let's (?:go with|use|switch to|stick with|ship|postpone)\b|^decision:|"
            r"^it was decided\b"
            r"|\b(?:team|board|committee|management|council|we all) (?:has |have )?"
            r"(?:decided|agreed|chose|approved)\b"
        ),
    ),
    (
        MemoryType.TODO,
        re.compile(
            rf"{_MAIN}(?:need|have|got|gotta|must)(?: to)? (?:\w+ly |also |still |"
            rf"first )?{_DEEDS}\b"
            r"|^(?:please |can you |could you |kindly )?(?:remind me (?:to|about|that)|"
            r"don't let me forget)\b"
            r"|^(?:todo|to-do|action item)\b"
        ),
    ),
    (
        MemoryType.GOAL,
        re.compile(
            r"^(?:[\w' ]{1,40}, )?(?:my|our|the) (?:\w+ ){0,2}(?:goal|aim|dream|ambition|"
            r"target|mission)s?"
            r" (?:is|are|for)\b"
            rf"|{_MAIN}(?:want|hope|would like|aim|intend) to (?:achieve|reach|become|finish|"
            rf"complete|launch|"
            r"open|learn|run|lose|save|start|publish|win|get (?:my|a|the))\b"
            rf"|{_MAIN}(?:am |are )?(?:aim|aiming|saving|saving up|training)"
            r" (?:to|for)\b"
        ),
    ),
    (
        MemoryType.PREFERENCE,
        re.compile(
            rf"{_MAIN}(?<!'d )(?:prefer|adore|enjoy|hate|dislike|detest|loathe|love|like|"
            rf"can't stand|"
            r"cannot stand|don't (?:like|eat|drink))\b(?! (?:to (?:hear|see|know)|it|that|"
            r"this|how|when|"
            r"what|you|your|them|the way|the idea))"
            rf"|{_I}(?:am |are )?(?:not )?(?:a )?(?:big |huge |great )?(?:fan of|into|"
            rf"obsessed with|fond of|"
            r"keen on|crazy about)\b"
            r"|\bmy (?:all-time |absolute |\w+ )?(?:favou?rites?|faves?|favs?|go-to|top pick|"
            r"hobby|hobbies|"
            r"pet peeve)\b(?! (?:memory|moment|part))"
            r"|^(?:please )?call me (?!an?\b|the\b|when|if|at\b|on\b|back|later|"
            r"tomorrow)"
        ),
    ),
)
_ASKED: Final = re.compile(
    r"(?:please |can you |could you |kindly )?(?:remind me|don['’]t let me forget|"
    r"call me (?=(?-i:[A-Z])))"
    r"|(?:todo|to-do|action item|decision)\b|let['’]s ",
    re.IGNORECASE,
)
_STANDING: Final = re.compile(r"(?:always|never|from now on,?) [a-z]+ \w")
_STATES: Final = _any(
    r"""an? (?!bit|lot|little|huge part) | allergic | \w+-?blind | deaf | vegan | vegetarian |"
    r" married | single |
    the (?:\w+ )?(?:lead|owner|manager|head|only|oldest|youngest) | divorced | engaged | from |
    on (?:call|leave|duty) |
    based | born | raised | retired | pregnant | diabetic | in charge | responsible | \d+ |
    live | lived | living | work(?:ed|ing)? (?:at|as|for|in|on|with|from) | study | studied |
    studying |
    have (?!no idea|an? (?:question|idea|feeling|point|minute|great|good|hard|blast| lot|bit|
    few))(?:an?|two|three|four|five|six|\d|no|got|been|never|my) |
    got (?:an?|two|three|four|\d|some) | own | use | using | run | manage | lead | teach |
    speak | drive | play | grew up | take | earn | pay | don't have | do not have | used to |
    started | moved | got (?:married|engaged) | sold |
    graduated | joined | quit | lost | won | bought | adopted | launched |
    opened | opening | starting | building | moving | learning | training | signed up | known |
    met"""
)
_STATE: Final = re.compile(
    rf"{_I}(?:am |are |was |were |have been )?(?:not )?{_STATES}(?:(?<= )|\b(?!'))"
    r"|^(?:\w+ )?(?:my|our) (?:[\w'-]+ ){1,5}(?:is|are|was|were|has|have|had|lives?|works?|"
    r"will|starts?|"
    r"ends?|runs?|costs?|got|died|passed|moved|loves?|likes?|hates?|plays?|told)\b"
    r"|\b(?:named|called|is on|is at|takes place|located)\b"
)
_HABIT: Final = re.compile(
    rf"{_I.removesuffix(_ADVERB)}"
    r"(?:never|always|only|usually|often|rarely|mostly|sometimes|normally|no longer|can't|"
    r"cannot) [a-z]+\b"
)
_PAST: Final = _any(
    r"""\w{2,}ed | was | were | had | went | got | made | took | came | saw | gave | found | told |
    left | kept | began | brought | built | caught | chose | drew | drove | ate | fell | flew |
    forgot | grew | heard | held | hid | led | lost | met | paid | ran | rode | said | sold |
    sent | sang | slept | spoke | spent | stole | swam | taught | threw | wore | wrote | broke |
    became | hurt | cut | put | read | set | been | done | seen | taken | written | hit | did |
    won | shot"""
)
_ACTED: Final = re.compile(rf"{_I}{_PAST}\b")
_DONE: Final = re.compile(
    rf"(?!.{{0,41}}\b(?:i'm|im|we're|(?:i|we)'ve got)\b){_MAIN}(?:have )?"
    rf"(?!(?:was|were|had|been|wanted|needed|loved|liked|worried|decided|tried)\b){_PAST}\b"
)
_INTENDED: Final = re.compile(
    rf"{_I}(?:am |are )?(?:going to|gonna|want to|wanna|would like to|hope to|thinking (?:of|"
    rf"about)|"
    rf"considering|planning|about to|like to|love to)\b"
    rf"|{_I}(?:been )?\w{{2,}}ing\b|\b(?:i|we)(?:'ll| will)\b"
)
_PERFECT: Final = re.compile(r"(?:i|we)(?:'ve| have) ")
_ELLIPTIC: Final = re.compile(
    r"(?:just |recently |finally |also |even |already )?(?:(?!based|inspired|surrounded|"
    r"excited|determined|"
    r"interested|tired|united|located|titled|named|called|used|compared|related|given|"
    r"supposed|added|"
    r"need|speed|motivated|blessed|amazed)\w{3,}ed|went|got|made|took|saw|gave|found|left|"
    r"built|lost|met|"
    r"bought|sold|ran|won|spent|had|been|began|gonna|planning to|hoping to|working on|wrote|"
    r"taught)\s+"
    r"(?:an?|the|my|our|to|for|on|up|in|at|with|some|two|three|\d|working|back|out|off|new)\b"
)
_ADVERBIALS: Final = _any(
    r"""last | next | this | yesterday | today | tomorrow | tonight | lately | recently |
    currently | now | since | after | before | during | in | on | at | for | from | as | when |
    until | every | each | two | three | four | \d+ | a few | a couple | these days |
    right now | usually | sometimes | also | just | still | finally | unfortunately | luckily |
    fortunately | sadly | besides | apart | back | with | due | because of | earlier | later |
    once | ever | over | by | so far | along with | growing up"""
)
_OWN: Final = re.compile(
    rf"(?:{_FIRST}|my|our)\b|{_ADVERBIALS}\b(?:[ ,]+[\w'-]+){{0,9}}?[ ,]+(?:{_FIRST}|my|our)\b"
)
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|must|may|does|do|did|should|isn't|aren't|wasn't|"
    r"doesn't|"
    r"don't|won't|cannot|can|went|got|took|came|left|began|fell|broke|ran|cost|goes)\b|"
    r"\s\w{3,}(?:ed|es|s)\b"
)
# "Write a …", "Approve the …": told to somebody; and what speaks of an exercise or an answer.
_ORDER: Final = re.compile(
    r"(?!the\b)[\w'-]+ (?:an?|the|this|that|these|my|your|me|it|all|any|some|how|what|why|to|"
    r"into|if|us|"
    r"only|no|its)\b(?! of\b)|the (?:above|probability|complement|answer|code|question|"
    r"first step|next step|"
    r"event|formula)\b|(?:from now|use|add)\b"
)
_DEFINITE: Final = re.compile(r"the |(?!.*\b(?:can|could|should|would|most)\b).* (?:the|our|my) ")

# --- What the words add and take ----------------------------------------------------------------

_TIME: Final = re.compile(
    rf"\b(?:{_WEEKDAY}|{_MONTH}|in may|may \d+|yesterday|today|tonight|tomorrow|ago|since|"
    rf"until|daily|weekly|"
    r"monthly|yearly|quarterly|nightly|hourly|noon|midnight|christmas|easter|thanksgiving|nowadays|"
    rf"(?:last|next|this|every|each|past|coming) (?:few )?(?:{_PERIOD}|mon|tue|wed|thu|fri|"
    rf"sat|sun|day|two|three)\w*|"
    r"at the (?:end|beginning) of|19\d\d|20\d\d|\d+(?::\d\d)? ?[ap]m|by the end|"
    r"(?:a|two|three|\d+|few|couple of) (?:times|weeks?|months?|years?|days?|hours?))\b"
)
_HAPPENED: Final = re.compile(
    rf"\b(?:yesterday|today|tonight|ago|(?:last|this) (?:{_PERIOD}|mon|tue|wed|thu|fri|sat|sun)\w*|"
    rf"on {_WEEKDAY}|(?:in|on|of) (?:{_MONTH}|may|\d{{4}})|(?:{_MONTH}|may) \d+)\b"
)
_NUMBER: Final = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|"
    r"thirty|hundred|"
    r"thousand|million|dozen|half|twice|once a)\b"
)
_KIN: Final = re.compile(
    r"\b(?:wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mom|mum|mother|dad|father|"
    r"parents|sister|"
    r"brother|son|daughter|kids?|child|children|baby|dog|cat|puppy|kitten|pets?|aunt|uncle|"
    r"cousin|niece|"
    r"nephew|grand(?:ma|pa|mother|father|parents|son|daughter)|boss|manager|landlord|roommate|"
    r"flatmate|"
    r"neighbou?r|best friend|fam(?:ily)?|mental health|hospital|injur\w+|"
    r"house|flat|apartment|doctor|allerg\w+|surgery|diagnosed|diabetes|pregnant|"
    r"medication|"
    r"degree|job|mentor|hometown|passport|mortgage)\b"
)
_HEDGE: Final = re.compile(
    r"\b(?:maybe|perhaps|i (?:think|guess|suppose|believe)|probably|possibly|might|may be|"
    r"not sure|unsure|"
    r"seems?|apparently|could be|supposedly|hopefully|(?:would|could|should) (?:be|have))\b"
)
_VAGUE: Final = re.compile(
    r"\b(?:things|stuff|something|somehow|some ?day|anything|whatever|everything|kinda|"
    r"(?:sort|kind|way) of|"
    r"a bit)\b"
)
# Attempts and hearsay; moods and promises of the moment.
_PASSING: Final = re.compile(
    r"\b(?:trying|tried) (?:to|\w+ing|using)\b|\b(?:i've|i have|i) (?:also )?heard\b"
)
_MOMENT: Final = re.compile(
    r"\bfeeling\b|\bworried\b|\bso (?!far|that|i|we|he|she|they|it|there|now)\w+|^(?:really|"
    r"reminds|made me)\b|^(?:i|we)(?:'ll| will)\b"
)
_FEELINGS: Final = _words(
    """amazing awesome wonderful fantastic incredible beautiful lovely nice good great excited
    exciting excitement proud grateful thankful blessed inspiring inspired inspire fun cool
    perfect gorgeous special rewarding fulfilling joy happiness happy peace peaceful calming
    soothing relaxing feeling feel feels felt love loved important huge best better lucky
    positive positivity vibes journey strength courage motivated motivation motivate determined
    passion passionate heart dreams dream hope believe difference impact encourage encouragement
    success succeed challenges challenge blast thrilled touching meaningful powerful memorable
    moments moment stressful tough hard rough overwhelming difficult amazed truly super crazy
    glad tiring stoked refreshing therapeutic magical breathtaking stunning delicious yummy cozy
    energy bond glam"""
)
_STOP: Final = _words(
    """a an the my our your his her their its i i'm i've i'd i'll im ive me we we're we've we'll us
    you it is am are was were be been being have has had do does did to of in on at for with and
    or but so that this it's from by as about into just really also very too some all not no
    will would can could should like there here then than when what how who which one get got
    make made go going gone went thing things lot lots bit kind out up down over back more most
    much many even still always never ever time way people everyone someone them they he she him
    because cause while since after before if or nor yet now new own other others take took
    taking taken keep keeps kept come came been let want wanna wanted need needed trying try
    sure well gonna something anything everything myself ourselves themselves each those these
    where why both few little big day life"""
)


_ENDING: Final = re.compile(r"(?<=\w{4})(?:ing|ed|s)$")
_DENIED: Final = re.compile(r"\b(?:no|not|never|none|nobody|stopped|quit|cancelled)\b|n't\b")


class Judged(NamedTuple):
    """A sentence that is a fact.

    Attributes:
        score: at least ``MIN_SCORE``; the more, the more telling.
        own: the speaker tells something of "me" or "us".
        hedged: it says "maybe" or "I think".
    """

    type: MemoryType
    score: int
    own: bool
    hedged: bool


class Gist(NamedTuple):
    """What a sentence says, to tell a repetition: its words, names and numbers, and whether not."""

    text: str
    words: frozenset[str]
    exact: tuple[str, ...]
    denied: bool

    @classmethod
    def of(cls, text: str) -> Gist:
        """Return the gist of a sentence."""
        words = [re.sub(r"'s$", "", each.replace("’", "'")) for each in _WORD.findall(text)]
        exact = [
            each.lower()
            for at, each in enumerate(words)
            if any(c.isdigit() for c in each)
            or (at > 0 and each[:1].isupper() and each.lower() not in _STOP)
        ]
        low = [each.lower() for each in words]
        told = frozenset(_ENDING.sub("", each) for each in low if each not in _STOP | _FEELINGS)
        return cls(" ".join(low), told, tuple(exact), _DENIED.search(" ".join(low)) is not None)

    def repeats(self, earlier: Gist) -> bool:
        """Return whether ``earlier`` says all of this but one word in five, the same names too."""
        if self.text == earlier.text:
            return True
        if len(self.words) < 2 or self.denied != earlier.denied:
            return False
        if self.exact != tuple(each for each in earlier.exact if each in self.exact):
            return False
        return len(self.words & earlier.words) >= MIN_REPEATED * len(self.words)


class _Sentence(NamedTuple):
    """A sentence as it was said, in lower case with straight apostrophes, and its words."""

    text: str
    low: str
    words: list[str]
    speakers: Collection[str]

    @property
    def specific(self) -> int:
        """0 to 4: names (2 at most), a number, a time."""
        times = bool(_NUMBER.search(self.low)) + bool(_TIME.search(self.low))
        return min(len(self.names), 2) + times

    @property
    def names(self) -> list[str]:
        """The words written as names, days and months among them."""
        return [
            word
            for word in self.words[1:]
            if word[:1].isupper() and word.lower() not in _STOP and word not in self.speakers
        ]

    @property
    def is_named(self) -> bool:
        """True where it names somebody or something, not a day alone."""
        return any(not _DATED.fullmatch(each.lower()) for each in self.names)

    @property
    def content(self) -> set[str]:
        """The words that name or tell something."""
        return {word.lower() for word in self.words} - _STOP - _FEELINGS

    @property
    def is_calm(self) -> bool:
        """True for a short plain sentence that nobody exclaims."""
        return len(self.words) <= 14 and self.text.endswith(".")


def judge(text: str, *, speakers: Collection[str], voice: Voice) -> Judged | None:
    """Return what a sentence states, or None where it is no fact or that is not sure.

    Args:
        speakers: the names of those who talk; addressing one of them names nobody.
        voice: a person's standing orders ("Always …") are preferences; an agent is heard only of
            what it has done itself.
    """
    if len(text) > MAX_SENTENCE_CHARS:
        return None
    low = _plain(text)
    sentence = _Sentence(text, low, _WORD.findall(text), speakers)
    if not _may_state(sentence):
        return None
    cue = next(((kind, found) for kind, each in _CUES if (found := each.search(low))), None)
    kind = cue[0] if cue else None
    asked = cue is not None and _ASKED.match(text) is not None
    if cue is None and voice is Voice.PERSON and _STANDING.match(low):
        kind, asked = MemoryType.PREFERENCE, True
    if _YOU.search(low) or (not asked and _hangs(sentence)):
        return None
    if voice is Voice.AGENT and not _DONE.match(low):
        return None
    own = asked or _OWN.match(low) is not None or _ELLIPTIC.match(low) is not None
    base = STATED if asked else _of_form(sentence, kind, own=own, person=voice is Voice.PERSON)
    if base is None:
        return None
    score = base + _telling(sentence, cue[1] if cue else None)
    if score < MIN_SCORE:
        return None
    if kind is None:
        event = _DONE.match(low) is not None and _HAPPENED.search(low) is not None
        kind = MemoryType.EVENT if event else MemoryType.FACT
    return Judged(kind, score, own, _HEDGE.search(low) is not None)


def _plain(text: str) -> str:
    return text.replace("’", "'").lower()


def _may_state(sentence: _Sentence) -> bool:
    """Return whether a sentence has the form of a statement, and is not about the talk itself."""
    text, low, words = sentence.text, sentence.low, sentence.words
    if not 2 <= len(words) <= MAX_WORDS or (len(words) < MIN_WORDS and not text.endswith(".")):
        return False
    if text.endswith(("?", "？", ":", "…", "...", ",", "(")) or _HALF.search(low):
        return False
    if sum(each.isalnum() or each in " '’.,\"" for each in text) < len(text) * 0.85:
        return False
    if _FORMULA.search(low) or _HEARD.search(low) or _NOW.search(low) or _TALK.match(low):
        return False
    return not (_FLEETING.match(low) and not _DATED.search(low)) and not _says_little(sentence)


def _says_little(sentence: _Sentence) -> bool:
    """Return whether a sentence tells a mood, a virtue or that something happened, but not what."""
    low = sentence.low
    if sentence.is_named or _KIN.search(low):
        return False
    if _VIRTUE.search(_CLAUSE.split(low, maxsplit=1)[0]):
        return True
    vague = _NEWS.search(low) or _TALKED.search(low)
    return vague is not None and len(sentence.content - _BLAND) < 3


def _hangs(sentence: _Sentence) -> bool:
    """Return whether a pronoun stands for something that the sentence does not name before it."""
    low = sentence.low
    if _HANGS.match(low) and not _TIME_HEAD.match(low):
        return True
    if _UNFILLED.search(low) and not sentence.is_named:
        return True
    bare = _POINTS_AT_NOUN.sub(lambda found: " " * len(found[0]), low)
    pronoun = _PRONOUN.search(bare)
    return pronoun is not None and not _ANTECEDENT.search(sentence.text[: pronoun.start()])


def _of_form(
    sentence: _Sentence, kind: MemoryType | None, *, own: bool, person: bool
) -> int | None:
    """Return how much the form alone tells, 0 to 2; None: it is no statement that can be kept."""
    low = sentence.low
    if kind is not None:
        return STATED
    if own:
        if _STATE.search(low) or _HABIT.search(low):
            return STATED
        if _INTENDED.search(low):
            return 1
        if not (sentence.specific or _KIN.search(low) or _PERFECT.match(low)):
            return None
        return int(any(each.search(low) for each in (_ACTED, _ELLIPTIC)))
    if not sentence.text.endswith(".") or not _FEELINGS.isdisjoint(low.rstrip(".").split()):
        return None
    name, lists = re.sub(r"['’]s$", "", sentence.words[0]), gazetteer()
    listed = name in lists.given and name not in lists.ambiguous
    if (listed or name in sentence.speakers) and (
        _VERB.search(low) or sentence.words[1].lower() == "and"
    ):
        return STATED
    if not _VERB.search(low) or _ORDER.match(low) or low.startswith(("next ", "last ", "this ")):
        return None
    # Without a name, number or date it is told to one who does not see what is spoken of.
    told = person and sentence.is_calm and _DEFINITE.match(low)
    return 1 if sentence.specific or told else None


def _telling(sentence: _Sentence, cue: re.Match[str] | None) -> int:
    """Return what the words add: names, numbers, times, things; less feelings and hedges."""
    low = sentence.low
    left = low if cue is None else low[: cue.start()] + low[cue.end() :]
    felt = sum(word in _FEELINGS for word in _WORD.findall(left))
    added = sentence.specific + bool(_KIN.search(low)) + sentence.is_calm
    added += (len(sentence.content) >= 3) + (len(sentence.content) >= 6)
    taken = (felt >= 1) + (felt >= 3) + bool(_HEDGE.search(low)) + bool(_VAGUE.search(low))
    return added - taken - 2 * bool(_PASSING.search(low)) - bool(_MOMENT.search(low))
