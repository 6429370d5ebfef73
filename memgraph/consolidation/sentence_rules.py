"""Decide which clauses of a turn are facts that a reader understands alone, and of which type.

A clause is kept as it was said: nothing here rewrites it. It has to have one of a few shapes: what
the speaker is, has, does by habit, prefers, decided, has to do or aims at; a turn in a life; what
holds for somebody named, for "my …" or "the … …". No word of it may stand for something that was
said elsewhere. Everything else stays in its turn. English only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from memgraph.consolidation.clauses import (
    FINITE,
    PAST,
    REASON,
    SUBORDINATE,
    Sentence,
    alternatives,
    clauses_of,
    sentences_of,
)
from memgraph.entities.gazetteer import gazetteer
from memgraph.model.conversation import Voice
from memgraph.model.enums import MemoryType
from memgraph.text.statement_forms import is_instruction

MAX_FACT_CHARS: Final = 400
MIN_WORDS: Final = 3
MAX_BEFORE: Final = 2
"""So many sentences before a clause may be quoted to say whom it is about."""
# The share of its words that makes a sentence a repetition of an earlier one.
MIN_REPEATED: Final = 0.8

MAX_CONTEXT_CHARS: Final = 120

_WORD: Final = re.compile(r"[^\W_]+(?:['’.+/:-][^\W_]+)*+")
_COUNT: Final = alternatives(
    r"""\d[\d.,:]* | two | three | four | five | six | seven | eight | nine | ten | eleven | twelve
    | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen |
    (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?"""
)
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH: Final = alternatives(
    r"""jan(?:uary)? | feb(?:ruary)? | march | april | june | july | aug(?:ust)? | sept?(?:ember)? |
    oct(?:ober)? | nov(?:ember)? | dec(?:ember)?"""
)
# A day that stays the same whenever it is read; months and seasons that the day of a turn fixes.
_DATE: Final = (
    rf"\b(?:{_MONTH}|(?:in|by|since|until|of|\d+) may|may \d+|\d+(?:st|nd|rd|th)|(?:19|20)\d\d|"
    r"christmas|easter)\b"
)
_SOON: Final = rf"(?:{_DATE}|\b(?:next|this) (?:year|month|spring|summer|autumn|winter|fall)\b)"
_OFTEN: Final = (
    rf"\b(?:(?:every|each) (?:{_DAY}|(?:\w+ )?(?:day|week|month|year|morning|evening|night))|daily|"
    rf"weekly|monthly|nightly|yearly|(?:once|twice|{_COUNT} times) an?|{_DAY}(?<=s)|always|never|"
    r"usually|no longer|at (?:least|most|weekends)|in the (?:morning|evening)s?)\b"
)

# --- What a fact may not hold -------------------------------------------------------------------

# The listener; what is said of the moment, of the talk, of what may be; the memory itself, as in
# orders to whoever keeps it.
_PASSING: Final = re.compile(
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
_FELT: Final = alternatives(
    r"""amaz\w+ | awesome | wonderful | fantastic | incredible | beautiful | lovely | nice | good |
    great | best | better | excit\w+ | proud | grateful | thankful | bless\w+ | inspir\w+ | fun |
    cool | perfect | special | reward\w+ | joy\w* | happ\w+ | peace\w* | loved | important | huge |
    big | lucky | journey | strength | motivat\w+ | passion\w* | heart\w* | dreams | believe |
    impact | encourag\w+ | success | challeng\w+ | thrill\w+ | powerful | moments? | stress\w+ |
    tough | hard | rough | overwhelm\w+ | difficult | super | crazy | mad | wild | tir(?:ed|ing) |
    magical | funny | weird | terrible | awful | scar(?:y|ed) | nervous | exhaust\w+ | busy | sad |
    angry | stupid | insane | sweet | interesting | blast"""
)
# Words that leave open what they mean.
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
_MANNER: Final = re.compile(r"(?!family|italy|july|supply|reply|apply)\w{3,}ly")
_IDLE: Final = re.compile(rf"(?:{_STOP}|{_FELT}|{_VAGUE}|{_DAY})(?:'\w+)?", re.IGNORECASE)
_PLAIN: Final = (MemoryType.FACT, MemoryType.EVENT)
_UNTOLD: Final = re.compile(
    rf"(?:\b\d+(?:st|nd|rd|th)? (?:of )?)?\b(?:{_MONTH}|may)\b(?: \d+)?|\b\d+(?:st|nd|rd|th)\b|"
    r"\b(?:19|20)\d\d\b|\d+:\d\d"
)
# Words that alone make something worth keeping.
_LIFE: Final = re.compile(
    r"\b(?:moved|graduated|years old|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|mom|mum|"
    r"mother|dad|father|parents|sister|brother|son|daughter|kids?|child|children|baby|dog|cat|"
    r"puppy|kitten|pets?|aunt|uncle|cousin|niece|nephew|grand\w+|boss|manager|landlord|roommate|"
    r"flatmate|house|flat|apartment|vegan|vegetarian|pregnant|diabet\w+|c(?:o)?eliac|retired|"
    r"allerg\w+|(?:broke|hurt) my|surgery|degree|job|asthma|married|divorced|engaged|car|bike|"
    r"business|shop|store|company|school|university|college|studio|passport|visa)\b"
)
# "The team": which one was said before, unless there is only one.
_BARE: Final = re.compile(
    r"(?<![a-z] of )(?<!at )(?<!in )(?<!near )(?<!by )(?<!from )\bthe (?!world|internet|weekends?|"
    r"mornings?|evenings?|nights?|day|week|month|year|end|kids|family|piano|violin|guitar|cello|"
    r"drums|flute|trumpet|ocean|sea|beach|mountains|countryside|country|city|gym|house|garden|"
    r"kitchen|office|aisle)(?:[\w-]+ )?[\w-]+(?=[.,!]*$| (?:to|at|and|by|starting|"
    r"on(?! my| our| (?:the )?\d))\b)"
)
_PRONOUN: Final = re.compile(
    r"\b(?:it|its|it's|it'll|itself|that's|this|them|they|they're|they've|they'll|their|theirs|he|"
    r"she|him|her|his|hers|he's|she's|he'll|she'll|these|those|(?<!-)ones?|there|here|such|same|"
    r"either|"
    r"neither|both|another|that(?= (?:is|was|day|time|one|night|kind|sort|week|year|\w+ (?:last|in|"
    r"from))\b|[.,!]?$)|(?:some|any|all|more|enough|two|three|so|too|others?)(?=[.!]*$)|(?:for|of|"
    r"in|at|to|with|by|do|doing|made|took|on|off|up|about|\w+ed) that(?! (?:i|we|my|our|the|"
    r"a)\b)|(?:do|did|am|are|was|have|will) too)\b"
)
# "This week", "there are two", "one of my friends", "both … and": they mean nothing said before.
_FILLED: Final = re.compile(
    r"\b(?:this|these) (?:week|weekend|month|year|morning|afternoon|evening|night|summer|winter|"
    rf"spring|autumn|fall|semester|quarter|sprint|coming|past|{_MONTH})\b|\b(?:after|before|"
    rf"during) this \w|\bthey(?:'ve|'re| have| are)? \w+ (?:me|us|my|our)\b|\bthere(?:'s| is|"
    rf" are| was| were)\b"
    r"|\bthose (?:with|who)\b|\bthe (?:only )?one (?:with|who|in)\b|\bone(?:-\w+| (?:of|on|day|"
    r"night|year|week|month|hour|child|kid|son|sister|brother|daughter|cat|dog))\b|\bsuch as\b"
    r"|\bboth (?:of )?(?:my|our|the)\b|\banother (?!one|at|in|on|from|for|to|with)\w+|"
    r"\bthe same \w+ as\b|\bboth (?=.* and )|\bone (?!(?:is|was|of|that|has|and|or|for|in|on|at|"
    r"to|with|which|who|i|we|you|more)\b)[a-z]{3,}|\beither(?=[,.!]|$)|\bkeep (?:it|them)\b"
)
_DETERMINER: Final = re.compile(r"\b(?:the|an?|every|each|no)(?: [\w-]+){0,2} $", re.IGNORECASE)
_PERSONAL: Final = re.compile(r"(?:s?he|him|hers?|his)(?:'\w+)?$")
_ANIMATE: Final = re.compile(r"\b(?:my|our) (?!\w+ing\b)[\w-]{3,}")
# What a pronoun may stand for, where it stands before it in the same quotation.
_ANTECEDENT: Final = re.compile(
    rf"\b(?:an?|my|our|every|each|no|the|{_COUNT}) (?!(?:[\w-]+ )?(?:{_VAGUE}|"
    rf"{_FELT})\b)[\w-]{{3,}}"
)

# --- The shapes that are kept -------------------------------------------------------------------

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
# What somebody does inwardly or in the talk itself; it says nothing lasting.
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
# The beginnings, ends, gains and losses that change what holds afterwards.
_TURN: Final = alternatives(
    r"""moved | bought | sold (?!out) | adopted | married | got (?=married|engaged|divorced|promoted
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
    r"""an? (?!bit|lot|little|few|huge part) | the (?:\w+ )?(?:lead|owner|manager|head|only|oldest
    |youngest|director|treasurer|captain)\b |
    (?:head|captain|chair|secretary|treasurer|member) (?=of|at)
    | (?:\w+ )?(?:allergic|intolerant) | \w+-?blind | deaf | vegan |
    vegetarian | married | single | divorced | engaged | widowed | from | on (?:call|leave|duty
    |nights|medication) | based | born | raised | retired | pregnant | diabetic | celiac | coeliac |
    in charge | responsible | left-handed | dyslexic | asthmatic | self-employed | unemployed |
    closed | open | due | {_COUNT}(?= years old|[,.!](?!\d)|$|\sand\s)"""
).replace("{_COUNT}", _COUNT)
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
_SHAPES: Final = tuple(
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
            rf"crazy about) {_OBJECT}|^my (?:all-time |absolute )?(?:favou?rite|fave|go-to|\w+ "
            r"hobby|pet peeve) [\w ]+ (?:is|are)\b|\b(?:is|are) (?:one of )?my (?:all-time |"
            r"absolute )?(?:favou?rites?|faves?|go-to)\b|^(?:please )?call me (?=\w+[.!]?$)(?!back|"
            r"later|crazy|tomorrow|when|if)",
        ),
        (
            MemoryType.EVENT,
            rf"(?!.*\bnever\b){_HAVE}(?:{_TURN}(?!')\b(?! (?:after|before|because|when)\b)|"
            rf"(?:{PAST}|had (?:an?|{_COUNT}))\b.*{_DATE})",
        ),
        (
            MemoryType.FACT,
            rf"{_AM}(?:not )?(?:{_STATES}|(?-i:[A-Z][a-z]+(?: [A-Z]\w+)?)(?=,|\.?$)|{_DOING}\b)"
            rf"|{_AM}(?:in|at|on|away|off|out|going to (?!be|try|have)\w+|(?!start|think|"
            rf"look)\w+ing) "
            rf".*(?:{_SOON}|{_OFTEN})|{_I}(?:'ll| will) (?!need|have|be)\w+ .*{_SOON}"
            rf"|{_I} (?:was|had) (?:an?|{_COUNT}) .*(?:{_LONG}|\buntil\b)"
            rf"|{_I}(?:'ve| have) {_ADV}(?:been )?+(?!\w+ing (?:for|since)\b|trying|thinking|"
            rf"looking|feeling|wanting|doing|"
            rf"going|thought|known|wanted|felt|meaning)\w+.*{_LONG}"
            rf"|{_I}(?: have|'ve {_ADV}got|'ve| own) {_ADV}(?:an?|no|my|(?-i:[A-Z]\w+)|"
            rf"{_COUNT}|several) (?!(?:[\w-]+ )?(?:{_VAGUE})\b)"
            rf"|{_I} {_ADV}{_DO}\b"
            rf"|{_I} (?:never|always|usually|only|mostly|no longer|don't(?=.* (?:after|before|at|"
            rf"when|without) )) (?!thought|knew|forget|remember|expected|want to|feel|see|been|"
            rf"heard|"
            rf"only|really|just|sold|care|get|know|have (?:to|any)|need|{PAST}\b)\w+\b"
            rf"|^(?:every \w+|{_DAY}(?<=s)),? (?:i|we) \w"
            rf"|{_I} {_ADV}(?!(?:{PAST}|can|had|got|was|were|want|need|plan)\b)\w+ "
            rf".*(?:{_OFTEN}|{_DATE})",
        ),
    )
)
_PERFECT: Final = re.compile(
    rf"{_I}(?: have|'ve) {_ADV}(?!been|had|got|never|always|done|seen|heard|found|thought|made)"
    rf"(?:{PAST}|\w+en)\b",
    re.IGNORECASE,
)
# Shapes that say something only where the rest of the clause is exact or says much.
_WEAK: Final = re.compile(
    rf"{_I} {_ADV}(?!(?:{_INNER}|{PAST})\b)(?:don't )?(?!(?:{_INNER}|{PAST})\b)\w+ \w"
    rf"|{_PERFECT.pattern}|{_AM}planning (?:to|on) \w"
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
# For whom or what something holds.
_WHOM: Final = re.compile(
    r"(?P<mine>(?:(?:one|two|some|most|all) of )?(?:my|our)(?: [\w&/-]+){1,6})|"
    r"(?P<the>the(?: [\w&/-]+){1,7})|"
    r"(?P<every>(?:every|all|no)(?: [\w&/-]+){1,5})|"
    rf"(?P<said>(?:s?he|they|it)\b)|(?P<name>{_NAME})(?:,? (?:my|our) [\w -]{{2,30}},)?|"
    r"(?P<bare>[a-z][\w-]+(?: [\w-]+){0,2})",
    re.IGNORECASE,
)
_IS: Final = re.compile(
    rf"['’]s (?=(?:an?|the|at|on|in|not|now|only|been|got|{_STATES}|{_COUNT}|\w+ing)\b)| (?:is|"
    rf"are|was|"
    rf"were|will be|"
    rf"has "
    r"been) ",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    rf"{_ADV}(?:{_STATES}|{_COUNT}\b|(?:the|my|our|in|at|on|under|for|with|to be|between|called|"
    r"named|only|about|around|(?:\w+ed|kept|held|sent|run|sold|given|taken|set) (?:in|by|on|at|"
    r"with|for|to|from|as|of|every|until|through)|written|built|"
    rf"{_DOING}\b|got (?:an?|no|{_COUNT}|(?-i:[A-Z]))|been \w+ing .*{_LONG}|\S*\w[.\d_/]\w|"
    r"(?!getting|being|doing|going|looking|feeling|trying|making|having|saying|thinking|kidding|"
    rf"coming)\w{{3,}}ing (?!to |me\b)\w|\w+ing .*{_SOON}|made|paid|out of|off) |off\b|"
    rf"(?-i:[A-Z]))",
    re.IGNORECASE,
)
_REFERRED: Final = re.compile(r"(?:the|my|our) ", re.IGNORECASE)
_HOLDS: Final = re.compile(
    rf"{_ADV}(?:{PAST}\b.*{_DATE}|(?:has|have|had) (?:an?|no|my|our|{_COUNT}|been|"
    rf"{_ADV}(?:{PAST}|\w+en))\b|(?:went (?:up|down)|broke)\b|{_TURN}\b|"
    r"(?:can't|cannot|must|will|won't|needs? to|has to|have to|should|may) \w+|(?!says|thinks|"
    r"looks|seems|feels|sounds|means|gets|makes|knows|reminds|helps|gives|keeps|shows|brings|this|"
    r"its|his|was|has|is|does|always|yes|lets|tells)[a-z]{2,}s (?!(?:is|are|was|were|has|have|had|"
    rf"will|must|can|should|may|do|does|of|and|need|got|{PAST}) )(?!to (?!the|an?\b|my|our|"
    r"(?-i:[A-Z])))(?=\w)|(?:live|work|run|use|start|end|open|close|cost|expire|come|go|belong|"
    r"report|play|study|meet|own|love|hate) \w)",
    re.IGNORECASE,
)
_VALUED: Final = re.compile(rf"(?:now |only )?(?:[£$€]\d|{_COUNT} [a-z]|broke\b|failed\b)")
_MODAL: Final = re.compile(r" (?:must|has to|have to|needs? to|may|should|cannot|can't) ")
# Orders that hold from now on, not for the task at hand.
_STANDING: Final = re.compile(
    r"(?:(?:and|also|but|please),? )*(?:always|never|from (?:now|next|here)[\w ]{0,20},?) "
    r"(?!been|had|give up)[a-z]+(?<!ing)(?<!ed) \w|"
    rf"no (?!{_VAGUE}\b)(?:[\w-]+ ){{1,5}}(?:in|on|at|before|after|during|please)\b|"
    rf"no [\w-]+,? please\b"
)
_LASTING: Final = re.compile(
    r"\b(?:always|never|every time|each time|any time|whenever|from (?:now|next \w+|here) on|in "
    r"(?:the )?future|when(?:ever)? (?:i|you)|everything|all (?:\w+ ){1,3}in|every \w+ in|"
    r"in (?:every"
    r"|all)|call me (?!an?\b|back|later|crazy|when|on|if|tomorrow|at)|keep (?:it|them|answers?|"
    r"replies|your \w+)|(?:answer|reply|speak|talk|write|"
    r"respond)(?: to)? (?:me )?in)\b"
)
_ORDER: Final = re.compile(
    r"(?:(?:and|also|but|so|just|one \w+|whatever happens|please),? |\w+, )*"
    r"(?:i(?:'d| would)? (?:want|need|like) you to |when(?:ever)? (?:i|you) [^,]{2,60}, )?"
)
_TO_ME: Final = re.compile(r"[a-z]+ (?:to )?me\b")
# To whom an order is given is no riddle.
_ADDRESS: Final = re.compile(
    r"\bi(?:'d| would) like\b|\byou(?:r|'re|'ll)?\b|\beverything\b|\banything\b|\btry\b"
)
_GROUND: Final = re.compile(r",\s+(?=(?:i|we|it|that|because|so|my|our)\b)", re.IGNORECASE)
_NO_SUBJECT: Final = re.compile(rf"{_IDLE.pattern}|{_COUNT}|one|{PAST}|\w+ing|let", re.IGNORECASE)
_LISTENER: Final = re.compile(r"\byou(?:'\w+|rs?|rself)?\b")
_CONDITION: Final = re.compile(r"(?:if|unless|until|once|as long as)\b")
# "I'm forty", "Leo's nine".
_CLOSE: Final = re.compile(rf"i'm |\w+'s {_COUNT}\W*$")
_LOOSE_END: Final = re.compile(r"(?:,? (?:which|where|who|and|but|so))?[ ,;:–—-]*$")
_OF_ANOTHER: Final = re.compile(r"(?:s?he|they|it|his|her|their|its)\b", re.IGNORECASE)
_NEXT_SUBJECT: Final = re.compile(r"(?:[,;.–—-]|\b(?:and|but|so|because|since|when|which|if)) $")
_PLACED: Final = re.compile(
    r"\b(?:[Tt]he|[Aa]t|[Ii]n|[Oo]n|of|[Tt]o|[Ff]rom|near|for|by|with) [A-Z][\w'-]*"
)
_REFERRING: Final = re.compile(r"it|they|them|their|its|ones?$")
_PRECISE: Final = re.compile(rf"{_OFTEN}|\b{_COUNT}\b|\b{_DAY}\b|{_DATE}")
_OFTEN_SAID: Final = re.compile(_OFTEN)
_DENIED: Final = re.compile(r"\b(?:no|not|never|none|nobody|stopped|quit|cancelled)\b|n't\b")
_EXACT: Final = re.compile(rf"{_OFTEN}|\b{_COUNT}\b|{_DENIED.pattern}")
_DATED: Final = re.compile(_DATE)
_DUE: Final = re.compile(rf"\b{_DAY}\b|{_DATE}")
_ENDING: Final = re.compile(r"(?<=\w{4})(?:ing|ed|s)$")


class Judged(NamedTuple):
    """What a clause is as a fact.

    Attributes:
        score: 1 to 5; the more, the more telling.
        own: the speaker tells something of "me" or "us".
    """

    type: MemoryType
    score: int
    own: bool


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
            or (at > 0 and each[:1].isupper() and not _IDLE.fullmatch(each))
        ]
        low = [each.lower() for each in words]
        told = frozenset(_ENDING.sub("", each) for each in low if not _IDLE.fullmatch(each))
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


def facts_of(
    content: str,
    *,
    speakers: Collection[str],
    voice: Voice,
    acquainted: bool,
    named: Collection[str] = (),
) -> Iterator[tuple[str, Judged]]:
    """Yield the quotations of a turn that are facts, each a contiguous part of it.

    Args:
        speakers: the names of those who talk; addressing one of them names nobody.
        voice: a person's standing orders ("Always …") are preferences; an agent is heard only of
            what it has done itself.
        acquainted: people talk to each other, so that "the meeting" is one that both know of.
        named: words that are written as names in the turns around.
    """
    sentences = list(sentences_of(content, speakers))
    names = {each for each in named if not _IDLE.fullmatch(each)}
    reader = _Reader(speakers, voice, acquainted, not acquainted and len(sentences) == 1, names)
    for at, sentence in enumerate(sentences):
        ordered = reader.order_in(sentence.text)
        if ordered is not None:
            yield ordered
            continue
        found = list(reader.facts_in(sentence.text))
        if not found:
            found = reader.facts_with(sentence, sentences[max(0, at - MAX_BEFORE) : at])
        yield from found


class _Reader(NamedTuple):
    """What is known of a turn while its clauses are judged.

    Attributes:
        alone: nothing else is said in the turn, so that "the rent" is the only one.
        named: words that are written as names in the turns around.
    """

    speakers: Collection[str]
    voice: Voice
    acquainted: bool
    alone: bool
    named: Collection[str]

    def order_in(self, text: str) -> tuple[str, Judged] | None:
        """Return what a person wants an assistant to do from now on; None where it is no order."""
        if self.acquainted or self.voice is Voice.AGENT or len(text) > MAX_FACT_CHARS:
            return None
        return self.as_order(text) or self.as_order(_GROUND.split(text)[0])

    def as_order(self, text: str) -> tuple[str, Judged] | None:
        """Return a text as an order that stands; None where it is none, or hangs on another."""
        low = _plain(text)
        if low.startswith("let"):
            return None
        order = _ORDER.match(low)
        tells = order is not None and (
            is_instruction(low[order.end() :]) or _TO_ME.match(low, order.end())
        )
        if not (_STANDING.match(low) or (tells and _LASTING.search(low))):
            return None
        if len(_WORD.findall(text)) < MIN_WORDS:
            return None
        if _PASSING.search(_ADDRESS.sub(" ", low)) or not self.refers_within(text):
            return None
        return text.rstrip(" ,;:-–—"), Judged(MemoryType.PREFERENCE, 3, own=True)

    def facts_with(
        self, sentence: Sentence, before: Sequence[Sentence]
    ) -> list[tuple[str, Judged]]:
        """Return the facts that begin a sentence with the sentence that says of whom they are."""
        if _OF_ANOTHER.match(sentence.text) is None:
            return []
        for first in reversed(before):
            if first.line is not sentence.line or sentence.end - first.begins > MAX_FACT_CHARS:
                break
            context = sentence.line[first.start : sentence.begins]
            if len(context) > MAX_CONTEXT_CHARS:
                break
            if "?" in context or _LISTENER.search(context.lower()):
                break
            if not self.refers_within(context):
                continue
            found = list(self.facts_in(sentence.text, context))
            if found:
                quoted, judged = found[0]
                end = sentence.line.index(quoted, sentence.start) + len(quoted)
                return [(sentence.line[first.start : end], judged)]
        return []

    def facts_in(self, sentence: str, before: str = "") -> Iterator[tuple[str, Judged]]:
        """Yield the clauses that are facts, each with what it takes to understand it.

        Args:
            before: what is said before the first clause.
        """
        clauses = clauses_of(sentence)
        reader = self._replace(alone=self.alone and len(clauses) == 1)
        conditional = False
        while clauses:
            start, end = clauses.pop(0)
            if not reader.is_clear(sentence[start:end], before):
                end = reader.clear_end(sentence, start, end, before)
            judged = None if conditional else reader.judge(sentence[start:end], before)
            conditional = _CONDITION.match(sentence[start:end].lower()) is not None
            if judged is None:
                if before:
                    return
                continue
            while clauses and self.goes_on(sentence, start, end, clauses[0], before):
                end = clauses.pop(0)[1]
            if clauses and self.is_conditional(sentence, clauses[0]):
                continue
            yield _LOOSE_END.sub("", sentence[start:end]), judged
            before = ""

    def clear_end(self, sentence: str, start: int, end: int, before: str) -> int:
        """Return where the clear part of a clause ends, at a comma; ``end`` where there is none."""
        at = sentence.find(", ", start, end)
        return at if at > 0 and self.is_clear(sentence[start:at], before) else end

    def is_conditional(self, sentence: str, clause: tuple[int, int]) -> bool:
        """Return whether a clause that is left off says when the clause before it holds."""
        low = _plain(sentence[clause[0] : clause[1]])
        return _CONDITION.match(low) is not None and _LISTENER.search(low) is None

    def goes_on(
        self, sentence: str, start: int, end: int, clause: tuple[int, int], before: str = ""
    ) -> bool:
        """Return whether the next clause belongs to the fact from ``start`` to ``end``."""
        if clause[1] - start > MAX_FACT_CHARS:
            return False
        if not self.is_clear(sentence[start : clause[1]], before):
            return False
        text = sentence[clause[0] : clause[1]]
        low = _plain(text)
        if REASON.match(sentence[end : clause[0]]) or SUBORDINATE.match(low):
            return True
        if self.judge(text, f"{before} {sentence[start:end]}") is not None:
            return True
        exact = _PRECISE.search(low) or self.is_named(_WORD.findall(text))
        beside = re.search(rf"\b{_FELT}\b", low) or (low[:5] == "which" and _PRONOUN.search(low))
        return bool(exact) and not beside

    def judge(self, text: str, before: str = "") -> Judged | None:
        """Return what a clause is as a fact; None where it has no shape that is kept.

        Args:
            before: the fact that it continues; a pronoun may stand for something named there.
        """
        words, low = _WORD.findall(text), _plain(text)
        if len(words) < MIN_WORDS - bool(_CLOSE.match(low)) or len(text) > MAX_FACT_CHARS:
            return None
        if text.isupper() or (SUBORDINATE.match(low) and FINITE.search(low.partition(", ")[0])):
            return None
        if not self.is_clear(text, before):
            return None
        straight = text.replace("’", "'")
        kind = next((kind for kind, each in _SHAPES if each.search(straight)), None)
        if self.voice is Voice.AGENT and kind is not MemoryType.EVENT:
            return None
        weak = kind is None and _WEAK.search(straight) is not None
        # To an assistant it is a step of what it is asked to do.
        weak = weak and (self.acquainted or not _PERFECT.search(straight))
        if kind is None and not weak and not self.holds(text):
            return None
        score = self.weight(words, low, MemoryType.FACT if weak else kind, weak=weak)
        return (
            None
            if score is None
            else Judged(kind or MemoryType.FACT, score, weak or kind is not None)
        )

    def weight(
        self, words: list[str], low: str, kind: MemoryType | None, *, weak: bool = False
    ) -> int | None:
        """Return how telling a clause of a shape is, 1 to 5; None where it says too little."""
        bare = _UNTOLD.sub(" ", low)
        told = {
            word
            for word in _WORD.findall(bare)
            if not (word[0].isdigit() or _IDLE.fullmatch(word) or _MANNER.fullmatch(word))
        }
        life = _LIFE.search(low) is not None
        event = kind is MemoryType.EVENT
        liked = kind in (MemoryType.PREFERENCE, MemoryType.TODO)
        # "I signed the contract on 3 May" is exact for those who know which.
        dated = _DATED.search(low) is not None
        due = _DUE.search(low) if kind is None else dated and not (event and " the " in low)
        named = self.is_named(["", *words] if words[0] in self.named else words)
        often = kind is MemoryType.FACT and _OFTEN_SAID.search(low) is not None
        exact = any((life, due, named, _EXACT.search(bare)))
        least = 1 + (event and not (life or named)) + weak + (not exact and not liked)
        if len(told) + life + often < least:
            return None
        if not liked:
            felt = len(re.findall(rf"\b{_FELT}\b", low))
            if felt and len(told) < 3 + felt:
                return None
            if kind in _PLAIN and not (named or life or self.alone) and _BARE.search(low):
                return None
        counted = any(map(str.isdigit, low))
        return 1 + exact + dated + counted + (len(told) > 3)

    def is_clear(self, text: str, before: str = "") -> bool:
        """Return whether no word means the listener, the moment or something said before.

        Args:
            before: what is quoted with it; it may say whom a pronoun means.
        """
        return not _PASSING.search(_plain(text)) and self.refers_within(text, before)

    def refers_within(self, text: str, before: str = "") -> bool:
        """Return whether all that the pronouns of a text may stand for is said in it or before."""
        low = _plain(text)
        for pronoun in _PRONOUN.finditer(_FILLED.sub(lambda found: " " * len(found[0]), low)):
            head = _DETERMINER.sub("", f"{before} {text[: pronoun.start()]}".lstrip())
            if _PERSONAL.match(pronoun[0]):
                known = self.names_somebody(head) or _ANIMATE.search(head.lower()) is not None
            else:
                plain = _REFERRING.match(pronoun[0])
                # What a clause speaks of is no object of it.
                start = 0 if before or _NEXT_SUBJECT.search(low, 0, pronoun.start()) else 1
                known = plain is not None and _ANTECEDENT.search(head.lower(), start) is not None
            if not known:
                return False
        return True

    def holds(self, text: str) -> bool:
        """Return whether it says what holds for somebody named, for "my …" or "the … …"."""
        be = _IS.search(text)
        if be is not None:
            pair = _WHOM.fullmatch(text, 0, be.start()), _VALUE.match(text, be.end())
        else:
            ends = (each.start() for each in islice(re.finditer(" ", text), 10))
            pairs = ((_WHOM.fullmatch(text, 0, at), _HOLDS.match(text, at + 1)) for at in ends)
            pair = next((pair for pair in pairs if all(pair)), (None, None))
        whom, found = pair
        if whom is None or found is None or re.search(rf"\b(?:{PAST}|who|which|that)\b", whom[0]):
            return False
        if whom["said"]:
            low, words = _plain(text), _WORD.findall(text)
            personal = low.startswith(("he", "she"))
            return personal or self.is_named(words) or _PRECISE.search(low) is not None
        if whom["mine"]:
            return be is None or _REFERRED.match(text, be.end()) is None
        words = _WORD.findall(whom[0])
        if whom["bare"]:
            told = text[whom.end() :]
            rule = be is not None or _MODAL.match(text, whom.end())
            idle = not rule or is_instruction(text) or _NO_SUBJECT.fullmatch(words[0].lower())
            exact = _PRECISE.search(told.lower()) or self.is_named(["", *_WORD.findall(told)])
            return not idle and bool(exact)
        if whom["name"] and _IDLE.fullmatch(words[0]) and not whom["name"][:1].isdigit():
            return False
        if whom["every"]:
            return _MODAL.match(text, whom.end()) is not None
        if whom["the"] and self.acquainted:
            return self.is_named(words)
        if whom["the"]:
            fixed = re.search(f"{_DATE}|{_OFTEN}", text[found.start() :].lower())
            valued = len(words) > 2 and _VALUED.match(text, found.start())
            return bool(self.alone or fixed or valued)
        if not (
            words[0] in self.speakers
            or words[0] in self.named
            or len(words) > 1
            or _is_given(words[0])
        ):
            told = text[whom.end() :]
            counted = re.search(r"\d", told) or _PRECISE.search(told.lower())
            exact = counted is not None or self.is_named(["", *_WORD.findall(told)])
            alone = (self.alone and not self.acquainted) or (be is not None and exact)
            return bool(alone) and not _NO_SUBJECT.fullmatch(words[0].lower())
        value = "" if be is None else text[be.end() :]
        plain = self.acquainted and re.fullmatch(r"an? \w+\W*", value) is not None
        return not (value[:1].isupper() or plain)

    def names_somebody(self, text: str) -> bool:
        """Return whether a text names somebody who is not addressed."""
        straight = text.replace("’", "'")
        words = _WORD.findall(straight)
        if self.is_named(_WORD.findall(_PLACED.sub(" ", straight))):
            return True
        return bool(words) and (_is_given(words[0]) or words[0].removesuffix("'s") in self.named)

    def is_named(self, words: list[str]) -> bool:
        """Return whether a word after the first is written as a name and is no day or month."""
        return any(
            word[0].isupper()
            and word not in self.speakers
            and not _IDLE.fullmatch(word)
            and not _UNTOLD.fullmatch(word.lower())
            for word in words[1:]
        )


def _is_given(word: str) -> bool:
    name, lists = word.replace("’", "'").removesuffix("'s"), gazetteer()
    return name in lists.given and name not in lists.ambiguous


def _plain(text: str) -> str:
    return text.replace("’", "'").lower()
