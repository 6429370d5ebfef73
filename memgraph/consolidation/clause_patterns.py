"""Regular expressions for clauses: what disqualifies a fact, and the shapes of facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from memgraph.model.enums import MemoryType
from memgraph.text.lexicon import WEEKDAY_NAMES
from memgraph.text.quantities import CARDINALS, TENS
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
# Quotations, and what may precede a sentence, such as a date.
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
        (?:it )?turn(?:s|ed) out |
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
    """A sentence of a turn: ``line[start:end]``, without openers and closers.

    Attributes:
        line: the line that contains it, with single spaces.
        begins: the start of the sentence including its opener.
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
        # In text without capitals a full stop also ends a sentence.
        small = part[:1].islower()
        for sentence in _SMALL_END.split(part) if small else (part,):
            begins = line.index(sentence, at)
            at = begins + len(sentence)
            if len(sentence) <= MAX_SENTENCE_CHARS and not _SPOKEN.search(sentence):
                start, end = _trimmed(sentence, speakers)
                yield TurnSentence(line, begins + start, begins + end, begins)


def _trimmed(sentence: str, speakers: Collection[str]) -> tuple[int, int]:
    """Return the start and end of a sentence without its opener and forms of address."""
    start = _LEADING.match(sentence).end()  # type: ignore[union-attr]
    for _ in range(4):
        opener = _OPENER.match(sentence, start)
        addressee, comma, _rest = sentence[start:].partition(", ")
        if opener is not None:
            start = opener.end()
        elif comma and addressee in speakers:
            start += len(addressee) + 2
        else:
            break
    head, comma, addressee = sentence[start:].rstrip(".!").rpartition(", ")
    closes = comma and (addressee in speakers or addressee.lower() in _CLOSERS)
    return start, start + len(head) if closes else len(sentence)


def clauses_of(sentence: str) -> list[tuple[int, int]]:
    """Return the start and end of each clause of a sentence.

    A part without a verb belongs to the clause before it, or to the next one if it is the first.
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


_COUNT: Final = rf"(?:\d[\d.,:]*|{'|'.join(CARDINALS[2:])}|(?:{'|'.join(TENS)})(?:-\w+)?)"
_DAY: Final = rf"(?:{'|'.join(WEEKDAY_NAMES['en'])})s?"
_MONTH: Final = alternatives(
    r"""jan(?:uary)? | feb(?:ruary)? | march | april | june | july | aug(?:ust)? | sept?(?:ember)? |
    oct(?:ober)? | nov(?:ember)? | dec(?:ember)?"""
)
# Absolute dates; below, also months and seasons relative to the date of the turn.
DATE: Final = (
    rf"\b(?:{_MONTH}|(?:in|by|since|until|of|\d+) may|may \d+|\d+(?:st|nd|rd|th)|(?:19|20)\d\d|"
    r"christmas|easter)\b"
)
_SOON: Final = rf"(?:{DATE}|\b(?:next|this) (?:year|month|spring|summer|autumn|winter|fall)\b)"
OFTEN: Final = (
    rf"\b(?:(?:every|each) (?:{_DAY}|(?:\w+ )?(?:day|week|month|year|morning|evening|night))|daily|"
    rf"weekly|monthly|nightly|yearly|(?:once|twice|{_COUNT} times) an?|{_DAY}(?<=s)|always|never|"
    r"usually|no longer|at (?:least|most|weekends)|in the (?:morning|evening)s?)\b"
)

# --- What disqualifies a fact -------------------------------------------------------------------

# Words about the listener, the moment, the conversation or possibilities, and about the memory
# itself, as in instructions to it.
PASSING: Final = re.compile(
    r"[?…]|\.\.\.|\b(?:you(?:'\w+)?|yours?|yourself|ya|y'all|u|ur|everything|something|anything|"
    r"maybe|perhaps|might|would(?! (?:like|love) to)|could|(?:i|we)'d(?! (?:like|love) to)|"
    r"hopefully|kinda|"
    r"probably|wonder\w*|guess|"
    r"suppose|think|thought|thinking|considering|mean|heard|know|feel\w*|felt|seem\w*|"
    r"look(?:s|ed)? like|sounds?|sorry|thank(?:s|ful)?|hope|hoping|wish|glad|sure|trying|tried|try|"
    r"promise|remember|reali[sz]\w+|reckon|noticed|so (?:much|many)|right now|at the moment|"
    r"later(?! this)|(?:i|we) (?:\w+ )?appreciate|debating|looking to|open to|lol|haha|"
    r"look\w* forward|supposed to|memor(?:y|ies)|confidence|importance|instructions?|prompts?|"
    r"jailbreak|language model|role ?play|developer mode|memory_id|tool_call)\b"
)
FELT: Final = alternatives(
    r"""amaz\w+ | awesome | wonderful | fantastic | incredible | beautiful | lovely | nice | good |
    great | best | better | excit\w+ | proud | grateful | thankful | bless\w+ | inspir\w+ | fun |
    cool | perfect | special | reward\w+ | joy\w* | happ\w+ | peace\w* | loved | important | huge |
    big | lucky | journey | strength | motivat\w+ | passion\w* | heart\w* | dreams | believe |
    impact | encourag\w+ | success | challeng\w+ | thrill\w+ | powerful | moments? | stress\w+ |
    tough | hard | rough | overwhelm\w+ | difficult | super | crazy | mad | wild | tir(?:ed|ing) |
    magical | funny | weird | terrible | awful | scar(?:y|ed) | nervous | exhaust\w+ | busy | sad |
    angry | stupid | insane | sweet | interesting | blast"""
)
# Vague words.
_VAGUE: Final = alternatives(
    r"""things? | stuff | times? | lots? | bit | ways? | ideas? | questions? | minute | second |
    news | story | adventures? | experiences? | start | progress | changes? | chance | point |
    issues? | problems? | trouble | days? | weeks? | months? | years? | people | plans? |
    places? | parts? | kind | sort | few | advice | help | feelings? | opportunit\w+ | steps? |
    goals? | support | efforts? | life | pic(?:ture)?s? | photos? | yesterday | today |
    (?:some|any|every|no)(?:thing|one|body) | tomorrow | weekends? | ago | recently | finally |
    currently | already | tons? | decision | decided | agreed | chosen? | finalized |
    love | enjoy | hate | prefer"""
)
_STOP: Final = alternatives(
    r"""an? | the | my | our | your | his | her | their | its? | i | me | we | us | you | is | am |
    are | was | were | be | been | being | have | has | had | do | does | did | to | of | in | on |
    at | for | with | and | or | but | so | that | this | from | by | as | about | into | just |
    really | also | very | too | some | all | not? | will | would | can | could | should | like |
    t?here | then | than | when | what | how | who | which | get | got | make | made | go | going |
    gone | went | up | down | over | back | more | most | much | many | even | still | always |
    n?ever | may | own | others? | take | took | keep | kept | come | came | let | want\w* | need |
    because | cause | while | since | after | before | if | nor | yet | now | new | out | off |
    well | gonna | each | those | these | where | why | both | old | using | used? |
    last | next | every | any | s?he | it"""
)
# Contractions count as the words before the apostrophe.
MANNER: Final = re.compile(r"(?!family|italy|july|supply|reply|apply)\w{3,}ly")
IDLE: Final = re.compile(rf"(?:{_STOP}|{FELT}|{_VAGUE}|{_DAY})(?:'\w+)?", re.IGNORECASE)
PLAIN: Final = (MemoryType.FACT, MemoryType.EVENT)
UNTOLD: Final = re.compile(
    rf"(?:\b\d+(?:st|nd|rd|th)? (?:of )?)?\b(?:{_MONTH}|may)\b(?: \d+)?|\b\d+(?:st|nd|rd|th)\b|"
    r"\b(?:19|20)\d\d\b|\d+:\d\d"
)
# Words about a person's life, which always make a statement worth storing.
LIFE: Final = re.compile(
    r"\b(?:moved|graduated|years old|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mom|mum|"
    r"mother|dad|father|parents|sister|brother|son|daughter|kids?|child|children|baby|dog|cat|"
    r"puppy|kitten|pets?|aunt|uncle|cousin|niece|nephew|grand\w+|boss|manager|landlord|roommate|"
    r"flatmate|house|flat|apartment|vegan|vegetarian|pregnant|diabet\w+|c(?:o)?eliac|retired|"
    r"allerg\w+|(?:broke|hurt) my|surgery|degree|job|asthma|married|divorced|engaged|car|bike|"
    r"business|shop|store|company|school|university|college|studio|passport|visa)\b"
)
# "The team" refers to an earlier sentence, unless there is only one.
BARE: Final = re.compile(
    r"(?<![a-z] of )(?<!at )(?<!in )(?<!near )(?<!by )(?<!from )\bthe (?!world|internet|weekends?|"
    r"mornings?|evenings?|nights?|day|week|month|year|end|kids|family|piano|violin|guitar|cello|"
    r"drums|flute|trumpet|ocean|sea|beach|mountains|countryside|country|city|gym|house|garden|"
    r"kitchen|office|aisle)(?:[\w-]+ )?[\w-]+(?=[.,!]*$| (?:to|at|and|by|starting|"
    r"on(?! my| our| (?:the )?\d))\b)"
)
PRONOUN: Final = re.compile(
    r"\b(?:it|its|it's|it'll|itself|that's|this|them|they|they're|they've|they'll|their|theirs|he|"
    r"she|him|her|his|hers|he's|she's|he'll|she'll|these|those|(?<!-)ones?|there|here|such|same|"
    r"either|"
    r"neither|both|another|that(?= (?:is|was|day|time|one|night|kind|sort|week|year|\w+ (?:last|in|"
    r"from))\b|[.,!]?$)|(?:some|any|all|more|enough|two|three|so|too|others?)(?=[.!]*$)|(?:for|of|"
    r"in|at|to|with|by|do|doing|made|took|on|off|up|about|\w+ed) that(?! (?:i|we|my|our|the|"
    r"a)\b)|(?:do|did|am|are|was|have|will) too)\b"
)
_STATUS: Final = alternatives(
    r"""\w+-?blind | deaf | vegan | vegetarian | married | single | divorced | engaged | widowed |
    retired | pregnant | diabetic | celiac | coeliac | left-handed | dyslexic | asthmatic |
    self-employed | unemployed | on leave"""
)
# Uses that do not refer to an earlier sentence: "this week", "there are two", "both … and".
FILLED: Final = re.compile(
    r"\b(?:this|these) (?:week|weekend|month|year|morning|afternoon|evening|night|summer|winter|"
    rf"spring|autumn|fall|semester|quarter|sprint|coming|past|days|{_MONTH})\b|\b(?:after|before|"
    rf"during) this \w|\bthey(?:'ve|'re| have| are)? \w+ (?:me|us|my|our)\b|\bthere(?:'s| is|"
    rf" are| was| were)\b"
    r"|\bthose (?:with|who)\b|\bthe (?:only )?one (?:with|who|in)\b|\bone(?:-\w+| (?:of|on|day|"
    r"night|year|week|month|hour|child|kid|son|sister|brother|daughter|cat|dog))\b|\bsuch as\b"
    r"|\bboth (?:of )?(?:my|our|the)\b|\banother (?!one|at|in|on|from|for|to|with)\w+|"
    r"\bthe same \w+ as\b|\bboth (?=.* and )|\bone (?!(?:is|was|of|that|has|and|or|for|in|on|at|"
    r"to|with|which|who|i|we|you|more)\b)[a-z]{3,}|\beither(?=[,.!]|$)|\bkeep (?:it|them)\b|"
    rf"(?:n't|\bnot|\bnever|\bno) (?:[\w-]+ (?:[\w-]+ )+|{_STATUS} )any more\b"
)
DETERMINER: Final = re.compile(r"\b(?:the|an?|every|each|no)(?: [\w-]+){0,2} $", re.IGNORECASE)
PERSONAL: Final = re.compile(r"(?:s?he|him|hers?|his)(?:'\w+)?$")
ANIMATE: Final = re.compile(r"\b(?:my|our) (?!\w+ing\b)[\w-]{3,}")
# Possible antecedents of a pronoun, earlier in the same quotation.
ANTECEDENT: Final = re.compile(
    rf"\b(?:an?|my|our|every|each|no|the|{_COUNT}) (?!(?:[\w-]+ )?(?:{_VAGUE}|"
    rf"{FELT})\b)[\w-]{{3,}}"
)

# --- The shapes of facts ------------------------------------------------------------------------

_ADV: Final = (
    r"(?:(?:(?!(?:f|app|re|rep|supp|comp|rall)ly\b)\w+ly|also|just|still|always|even|all|never|"
    r"now|often|sometimes|very|already|both|no "
    r"longer|not|usually) )*+"
)
_LEAD: Final = (
    r"(?:(?:back )?(?:last|this|next|on|in|from|since|for|at|by|after|before|yesterday|today|"
    rf"tomorrow|every|during|{_DAY}|\w+ (?:weeks?|months?|years?|days?) ago)\b[^,]{{0,50}}?,? )?"
)
_I: Final = (
    rf"^{_LEAD}(?:i|we|(?:my \w+|(?-i:[A-Z][a-z]+)) and (?:i|me)|me and (?:my \w+|"
    rf"(?-i:[A-Z][a-z]+))|"
    r"im(?= )|ive(?= ))"
)
# Mental and conversational verbs, which state nothing lasting.
_INNER: Final = alternatives(
    r"""think | know | hope | guess | mean | see | feel | want | need | love | like | wonder |
    suppose | believe | understand | agree | get | appreciate | hear | look | sound | seem | thank |
    bet | swear | promise | wish | remember | forget | notice | reali[sz]e | imagine | say | tell |
    ask | doubt | expect | care | mind | try | wait | let | come | go | keep \w+ing | plan | find |
    figure |
    just |
    admit | recommend | suggest | assume | trust | miss | enjoy | hate | prefer | have | do | did |
    don't | didn't | haven't | could | can | can't | will | won't | would | should | must | may |
    might | am | are | was | were | had | got | been | be | and | or | who | that | to | both |
    all |
    gotta | gonna | wanna | consider | intend | decide | give | end |
    stay | laugh | cry | dream | worry | struggle | work on | welcome | learn | value | cherish"""
)
_WANT: Final = r"(?: (?:want|hope|would (?:like|love)|aim|intend|plan|mean)|'d (?:like|love))"
_LATELY: Final = (
    r"\b(?:last (?:week|month|year|spring|summer|autumn|fall|winter)|\w+ (?:weeks?|months?|"
    r"years?) ago)\b"
)
_LONG: Final = r"\b(?:for (?:[\w-]+ ){0,4}(?:years?|months|weeks|decades|ages|life)|since)\b"
_AM: Final = rf"{_I}(?:'m| am|'re| are|(?<=im)) {_ADV}"
_HAVE: Final = rf"{_I}(?: have|'ve)? {_ADV}"
_HEADS: Final = r"(?:people|staff|\w{3,}(?:er|ee|ist|ian|ant)s)"
_RESET: Final = r"(?:move|postpone|reschedule|shift|push|bring|put)"
# "We had to move the workshop to 21 February".
RESET: Final = re.compile(rf"\b{_RESET}(?:d|ed)? .*\bto .*{DATE}")
# Events that change a lasting state: beginnings, ends, gains and losses.
_TURN: Final = alternatives(
    rf"""had to (?={_RESET} .*\bto .*\d) |
    moved | bought | sold (?!out) | adopted | married | got (?=married|engaged|divorced|promoted
    |hired|fired|accepted|into |my (?!\w+ (?:together|done))|an? \w+ (?:job|dog|cat|puppy|kitten
    |degree|internship|offer|loan|car)) | graduated | joined | quit | left (?=my|the |our) |
    lost (?=my|our|\d) | won | started (?!to |thinking|feeling|with |caring|looking|getting) |
    founded | opened | launched | finished (?=my|a |the|re|wr|school|college|university) |
    completed | published | signed | enrolled | accepted | hired | broke (?=my|a |our) | injured |
    retired | passed (?!by|out|the time) | failed | earned | became | booked | switched |
    turned (?=\d|\w+ty|\w+teen) | migrated | registered | submitted | stopped | gave up |
    changed (?=my (?!mind)|our|from|jobs) | inherited | hurt (?=my) | applied (?:to|for) |
    had (?=surgery|a (?:baby|stroke|miscarriage|heart)|twins) | renewed | upgraded | cancell?ed |
    (?:extended|raised|increased|reduced|cut|lowered) (?=.* to \D?\d) | postponed | scheduled |
    appointed | promoted | transferred | replaced | dropped (?!off) | closed | deployed | released |
    rented | built | wrote | negotiated | t(?:ook|aken) (?=over|(?:a|the) job) | grew up | died |
    passed away | approved | (?:was|were|been) (?=born|raised|diagnosed|promoted|hired|accepted
    |awarded|elected|admitted|laid off|fired|appointed|chosen|selected|named)"""
)
_STATES: Final = alternatives(
    rf"""an? (?!bit|lot|little|few|huge part) | the (?:\w+ )?(?:lead|owner|manager|head|only|oldest
    |youngest|director|treasurer|captain)\b |
    (?:head|captain|chair|secretary|treasurer|member) (?=of|at)
    | (?:\w+ )?(?:allergic|intolerant) | {_STATUS} | from | on (?:call|duty|nights|medication) |
    based | born | raised | in charge | responsible | closed | open | due |
    {_COUNT}(?= years old|[,.!](?!\d)|$|\sand\s)"""
)
_DO: Final = r"(?:used to (?!love|think|be)|play|study|speak|teach)"
_DOING: Final = alternatives(
    r"""learning | training | building | moving | studying | writing | opening | launching |
    starting (?!from|with|to) | expecting | retiring | leaving | joining | selling | buying |
    hosting | teaching | using | renting | raising | saving (?:up )?for | running | volunteering |
    working (?:as|at|for|with|from|on (?!\w+ing)) | living (?=in|with|at|on) | mentoring |
    getting (?:married|divorced|engaged) | having (?:an? |twins|surgery) | organi[sz]ing |
    planning (?=a|my|our) | replacing | migrating | switching | dropping | hiring |
    applying (?:to|for) | recovering from | taking (?=an? ) | offering"""
)
_LIKE: Final = (
    r"(?:love|like|enjoy|adore|prefer|hate|dislike|detest|loathe|can't stand|cannot stand|don't "
    r"(?:like|eat|drink))"
)
_OBJECT: Final = (
    r"(?!(?:to (?:hear|see|know|be)|not|it|that|this|how|when|what|your|them|him|her|the|being|"
    r"having|seeing|feeling|getting|making|helping|knowing|hearing|my new|all)\b)"
)
_DEEDS: Final = alternatives(
    r"""call | book | buy | send | e-?mail | submit | finish | renew | pick up | pay | schedule |
    fix | write | prepare | review | order | file | register | sign | update | deploy | merge |
    return | clean | pack | apply | cancel | contact | reply | ship | upload | print | repair |
    replace | collect | fill | complete | arrange | rotate | migrate | reschedule | invite |
    deliver | hand in | bring | visit | set up | talk to | change | ask | check (?:my|our|with) |
    see (?:the|a|my) (?:doctor|dentist) | get (?:an?|my|some|new) (?!better|good|sense|idea)"""
)
SHAPES: Final = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            MemoryType.DECISION,
            rf"{_HAVE}(?:are |am )?(?:decided|agreed) (?:to|on|that|against|not|with|we|i)\b"
            rf"|{_HAVE}(?:settled on|opted (?:for|to)|ruled out|finalized|chosen|chose(?! to))\b"
            rf"|{_AM}(?:going|sticking) with\b|^decision:|^it was decided\b"
            r"|^let's (?:go with|use|switch to|stick with|ship|postpone)\b"
            r"|^(?:the|our) (?:\w+ )?(?:team|board|committee|management|council|company) (?:has |"
            r"have )?(?:decided|agreed|chose|approved)\b",
        ),
        (
            MemoryType.TODO,
            rf"{_I}(?:'ve|'m)? {_ADV}(?:(?:need|have|got|gotta|must)(?: {_ADV}to)?|{_ADV}to) "
            rf"(?:\w+ly |also |still |first )?{_DEEDS}\b|^(?:todo|to-do|action item)\b"
            r"|^(?:please )?(?:remind me (?:to|about|that)|don't let me forget)\b",
        ),
        (
            MemoryType.GOAL,
            r"^(?:my|our) (?:\w+ ){0,2}(?:goal|aim|dream|ambition|target)s? (?:is|are|for)\b"
            rf"|{_I} {_ADV}(?:want|hope|would like|aim|intend|plan) to (?:achieve|reach|become|"
            rf"finish|complete|launch|open|learn|run|lose|save|publish|win|buy|move|retire|get "
            rf"(?:my|a))\b|{_AM}(?:aiming|saving|saving up|training) (?:to|for)\b"
            rf"|{_I}(?: really| still)?{_WANT} to \w.*(?:{_SOON}|\b\d)",
        ),
        (
            MemoryType.PREFERENCE,
            rf"{_I} {_ADV}(?:much |absolutely )?{_LIKE} {_OBJECT}"
            rf"|{_AM}(?:an? )?(?:big |huge |great )?(?:fan of|into|obsessed with|fond of|keen on|"
            rf"crazy about) {_OBJECT}|^(?:my|our) (?:all-time |absolute )?(?:favou?rite|fave|go-to|"
            rf"\w+ hobby|pet peeve) [\w ]+ (?:is|are)\b(?! {FELT}(?: these days)?\W*$)"
            r"|\b(?:is|are) (?:one of )?my (?:all-time |"
            r"absolute )?(?:favou?rites?|faves?|go-to)\b|^(?:please )?call me (?=\w+[.!]?$)(?!back|"
            r"later|crazy|tomorrow|when|if)",
        ),
        (
            MemoryType.EVENT,
            rf"(?!.*\bnever\b){_HAVE}(?:{_TURN}(?!')\b(?! (?:after|before|because|when)\b)|"
            rf"(?:{PAST}|had (?:an?|{_COUNT}))\b.*{DATE})",
        ),
        (
            MemoryType.FACT,
            rf"{_AM}(?:not )?(?:{_STATES}|(?-i:[A-Z][a-z]+(?: [A-Z]\w+)?)(?=,|\.?$)|{_DOING}\b)"
            rf"|{_AM}(?:in|at|on|away|off|out|going to (?!be|try|have)\w+|(?!start|think|"
            rf"look)\w+ing) "
            rf".*(?:{_SOON}|{OFTEN})|{_I}(?:'ll| will) (?!need|have|be)\w+ .*{_SOON}"
            rf"|{_I} (?:was|had) (?:an?|{_COUNT}) .*(?:{_LONG}|\buntil\b)"
            rf"|{_I}(?:'ve| have) {_ADV}(?:been )?+(?!\w+ing (?:for|since)\b|trying|thinking|"
            rf"looking|feeling|wanting|doing|"
            rf"going|thought|known|wanted|felt|meaning)\w+.*{_LONG}"
            rf"|{_I}(?: have|'ve {_ADV}got|'ve| own) {_ADV}(?:an?|no|my|(?-i:[A-Z]\w+)|"
            rf"{_COUNT}|several) (?!(?:[\w-]+ )?(?:{_VAGUE})\b)"
            rf"|{_I} {_ADV}{_DO}\b"
            rf"|^we(?:'re| are) {_COUNT} {_HEADS} now\b"
            rf"|{_I} (?:never|always|usually|only|mostly|no longer|don't(?=.* (?:after|before|at|"
            rf"when|without) )) (?!thought|knew|forget|remember|expected|want to|feel|see|been|"
            rf"heard|"
            rf"only|really|just|sold|care|get|know|have (?:to|any)|need|{PAST}\b)\w+\b"
            rf"|^(?:every \w+|{_DAY}(?<=s)),? (?:i|we) \w"
            rf"|{_I} {_ADV}(?!(?:{PAST}|can|had|got|was|were|want|need|plan)\b)\w+ "
            rf".*(?:{OFTEN}|{DATE})",
        ),
    )
)
PERFECT: Final = re.compile(
    rf"{_I}(?: have|'ve) {_ADV}(?!been|had|got|never|always|done|seen|heard|found|thought|made)"
    rf"(?:{PAST}|\w+en)\b",
    re.IGNORECASE,
)
# Weak shapes, which count only if the rest of the clause is precise or informative.
WEAK: Final = re.compile(
    rf"{_I} {_ADV}(?!(?:{_INNER}|{PAST})\b)(?:don't )?(?!(?:{_INNER}|{PAST})\b)\w+ \w"
    rf"|{PERFECT.pattern}|{_AM}planning (?:to|on) \w"
    rf"|{_I} {_ADV}{PAST} .*{_LATELY}"
    rf"|{_I} (?:can't|cannot|can only) {_ADV}(?!(?:{_INNER})\b)\w+ \w"
    rf"|{_I} (?:had|need) (?:about |at least )?{_COUNT}\b|{_I}.*(?-i: [A-Z][a-z]+), (?:my|"
    rf"our) [\w ]+[,.]",
    re.IGNORECASE,
)
_NAME: Final = (
    r"(?:(?:Mrs?|Ms|Dr|St)\.? )?"
    r"(?-i:[A-Z])[\w'’.-]*\w(?: (?:(?-i:[A-Z])[\w'’.-]*\w|&|of|de|van|von)){0,3}"
)
# The subject of a statement.
WHOM: Final = re.compile(
    r"(?P<mine>(?:(?:one|two|some|most|all) of )?(?:my|our)(?: [\w&/-]+(?:['’]s)?){1,6})|"
    r"(?P<the>the(?: [\w&/-]+){1,7})|"
    r"(?P<every>(?:every|all|no)(?: [\w&/-]+){1,5})|"
    rf"(?P<said>(?:s?he|they|it)\b)|(?P<name>{_NAME})(?:,? (?:my|our) [\w -]{{2,30}},)?|"
    r"(?P<bare>[a-z][\w-]+(?: [\w-]+){0,2})",
    re.IGNORECASE,
)
IS: Final = re.compile(
    rf"['’]s (?=(?:an?|the|at|on|in|not|now|only|been|got|{_STATES}|{_COUNT}|\w+ing)\b)| (?:is|"
    rf"are|was|"
    rf"were|will be|"
    rf"has "
    r"been|isn['’]t(?= .*\bany ?more\b)) ",
    re.IGNORECASE,
)
VALUE: Final = re.compile(
    rf"{_ADV}(?:{_STATES}|{_COUNT}\b|(?:the|my|our|in|at|on|under|for|with|to be|between|called|"
    r"named|only|about|around|(?:\w+ed|kept|held|sent|run|sold|given|taken|set) (?:in|by|on|at|"
    r"with|for|to|from|as|of|every|until|through)|written|built|"
    rf"{_DOING}\b|got (?:an?|no|{_COUNT}|(?-i:[A-Z]))|been \w+ing .*{_LONG}|\S*\w[.\d_/]\w|"
    r"(?!getting|being|doing|going|looking|feeling|trying|making|having|saying|thinking|kidding|"
    rf"coming)\w{{3,}}ing (?!to |me\b)\w|\w+ing .*{_SOON}|made|paid|out of|off) |off\b|"
    rf"(?-i:[A-Z]))",
    re.IGNORECASE,
)
REFERRED: Final = re.compile(r"(?:the|my|our) |on (?:me|us)\b", re.IGNORECASE)
HOLDS: Final = re.compile(
    rf"{_ADV}(?:{PAST}\b.*{DATE}|(?:has|have|had) (?:an?|no|my|our|{_COUNT}|been|"
    rf"{_ADV}(?:{PAST}|\w+en))\b|(?:went (?:up|down)|broke)\b|{_TURN}\b|"
    r"(?:can't|cannot|must|will|won't|needs? to|has to|have to|should|may) \w+|(?!says|thinks|"
    r"looks|seems|feels|sounds|means|gets|makes|knows|reminds|helps|gives|keeps|shows|brings|this|"
    r"its|his|was|has|is|does|always|yes|lets|tells)[a-z]{2,}s (?!(?:is|are|was|were|has|have|had|"
    rf"will|must|can|should|may|do|does|of|and|need|got|{PAST}) )(?!to (?!the|an?\b|my|our|"
    r"(?-i:[A-Z])))(?=\w)|(?:live|work|run|use|start|end|open|close|cost|expire|come|go|belong|"
    r"report|play|study|meet|own|love|hate) \w)",
    re.IGNORECASE,
)
VALUED: Final = re.compile(rf"(?:now |only )?(?:[£$€]\d|{_COUNT} [a-z]|broke\b|failed\b)")
MODAL: Final = re.compile(r" (?:must|has to|have to|needs? to|may|should|cannot|can't) ")
# Standing instructions, not orders for the current task.
STANDING: Final = re.compile(
    r"(?:(?:and|also|but|please),? )*(?:always|never|from (?:now|next|here)[\w ]{0,20},?) "
    r"(?!been|had|give up)[a-z]+(?<!ing)(?<!ed) \w|"
    rf"no (?!{_VAGUE}\b)(?:[\w-]+ ){{1,5}}(?:in|on|at|before|after|during|please)\b|"
    rf"no [\w-]+,? please\b"
)
LASTING: Final = re.compile(
    r"\b(?:always|never|every time|each time|any time|whenever|from (?:now|next \w+|here) on|in "
    r"(?:the )?future|when(?:ever)? (?:i|you)|everything|all (?:\w+ ){1,3}in|every \w+ in|"
    r"in (?:every"
    r"|all)|call me (?!an?\b|back|later|crazy|when|on|if|tomorrow|at)|keep (?:it|them|answers?|"
    r"replies|your \w+)|(?:answer|reply|speak|talk|write|"
    r"respond)(?: to)? (?:me )?in)\b"
)
ORDER: Final = re.compile(
    r"(?:(?:and|also|but|so|just|one \w+|whatever happens|please),? |\w+, )*"
    r"(?:i(?:'d| would)? (?:want|need|like) you to |when(?:ever)? (?:i|you) [^,]{2,60}, )?"
)
TO_ME: Final = re.compile(r"[a-z]+ (?:to )?me\b")
# In an instruction these words are not ambiguous: they address the listener.
ADDRESS: Final = re.compile(
    r"\bi(?:'d| would) like\b|\byou(?:r|'re|'ll)?\b|\beverything\b|\banything\b|\btry\b"
)
GROUND: Final = re.compile(r",\s+(?=(?:i|we|it|that|because|so|my|our)\b)", re.IGNORECASE)
NO_SUBJECT: Final = re.compile(rf"{IDLE.pattern}|{_COUNT}|one|{PAST}|\w+ing|let", re.IGNORECASE)
LISTENER: Final = re.compile(r"\byou(?:'\w+|rs?|rself)?\b")
CONDITION: Final = re.compile(r"(?:if|unless|until|once|as long as)\b")
# "I'm forty", "Leo's nine".
CLOSE: Final = re.compile(rf"i'm |\w+'s {_COUNT}\W*$")
LOOSE_END: Final = re.compile(r"(?:,? (?:which|where|who|and|but|so))?[ ,;:–—-]*$")
OF_ANOTHER: Final = re.compile(r"(?:s?he|they|it|his|her|their|its)\b", re.IGNORECASE)
NEXT_SUBJECT: Final = re.compile(r"(?:[,;.–—-]|\b(?:and|but|so|because|since|when|which|if)) $")
PLACED: Final = re.compile(
    r"\b(?:[Tt]he|[Aa]t|[Ii]n|[Oo]n|of|[Tt]o|[Ff]rom|near|for|by|with) [A-Z][\w'-]*"
)
REFERRING: Final = re.compile(r"it|they|them|their|its|ones?$")
PRECISE: Final = re.compile(rf"{OFTEN}|\b{_COUNT}\b|\b{_DAY}\b|{DATE}")
OFTEN_SAID: Final = re.compile(OFTEN)
COUNTED: Final = re.compile(rf"[£$€]\d|\b{_COUNT} [a-z]")
ITS: Final = re.compile(r"it\b", re.IGNORECASE)
DENIED: Final = re.compile(r"\b(?:no|not|never|none|nobody|stopped|quit|cancelled)\b|n't\b")
EXACT: Final = re.compile(rf"{OFTEN}|\b{_COUNT}\b|{DENIED.pattern}")
DATED: Final = re.compile(DATE)
DUE: Final = re.compile(rf"\b{_DAY}\b|{DATE}")
ENDING: Final = re.compile(r"(?<=\w{4})(?:ing|ed|s)$")
