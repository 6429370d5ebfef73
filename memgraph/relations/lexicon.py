"""The word lists of the comparison: short tables, English first, some German, French, Spanish."""

from __future__ import annotations

import re
from typing import Final

from memgraph.text.stem import stem
from memgraph.text.words import (
    CARDINALS,
    MONTH_NUMBERS,
    TENS,
    WEEKDAY_NUMBERS,
)
from memgraph.text.words import MONTHS as MONTH_NAMES
from memgraph.text.words import WEEKDAYS as WEEKDAY_NAMES


def words(text: str) -> frozenset[str]:
    """Return the space-separated words of a text."""
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


def _groups(*groups: str) -> dict[str, frozenset[int]]:
    table: dict[str, set[int]] = {}
    for number, group in enumerate(groups):
        for word in group.split():
            table.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in table.items()}


ALIASES: Final = {
    form: word
    for word, forms in {
        # Function words and everyday verbs of other languages, read as their English twins.
        "the": "der das dem des le les el los las du del dal",
        "a": "ein eine einen einem einer eines une un unos unas",
        "be": "ist sind wird werden est sont es está están sommes",
        "in": "im dans en à au aux bei am um zu",
        "on": "auf sur",
        "of": "von de vom",
        "with": "avec con",
        "for": "für para",
        "from": "aus",
        "until": "bis jusqu",
        "and": "und et y e",
        "or": "oder ou o",
        "also": "auch aussi también ebenfalls zusätzlich",
        "not": "nicht pas nie niemals jamais nunca",
        "no": "kein keine keinen keinem keiner aucun aucune ningún ninguna",
        "my": "mein meine meinen meiner meinem mon ma mes mi mis",
        "our": "unser unsere unseren unserer unserem notre nos nuestro nuestra nuestros nuestras",
        "i": "ich je yo",
        "we": "wir nous nosotros",
        "now": "jetzt mittlerweile inzwischen neuerdings désormais maintenant ahora dorénavant",
        "may": "darf dürfen",
        "must": "muss müssen doit doivent debe deben",
        "can": "kann können peut peuvent puede pueden",
        "every": "each jeden jede jedes alle chaque cada",
        "new": "neuer neue neues neuen nouveau nouvelle nuevo nueva",
        "live": "wohnt wohne wohnen lebt habite habitent vit vive viven resides reside residing",
        "listen": "lauscht lauschen écoute escucha",
        "attend": "atiende atienden",
        "use": "nutzt nutzen verwendet verwenden utilise utilisent usa usan",
        "work": "arbeitet arbeite arbeiten travaille trabaja trabajo",
        "call": "heißt heissen heißen heisse heiße llama llaman appelle named titled",
        "cost": "kostet kosten coûte coûtent cuesta cuestan",
        "run": "läuft laufen tourne ran corre",
        "begin": "beginnt beginnen commence commencent empieza comienza starts start started "
        "begun began begins kicks",
        "end": "endet enden finit termina ends finishes finish finished ended",
        "last": "dauert dauern dure dura takes_time",
        "open": "öffnet öffnen ouvre ouvrent abre abren opens geöffnet ouvert abierto",
        "close": "schließt schließen ferme ferment cierra shut shuts closes closed geschlossen "
        "fermé fermée cerrado cerrada",
        # English variants.
        "database": "db databases",
        "production": "prod live_",
        "staging": "stage_",
        "kubernetes": "k8s",
        "write": "wrote written writes",
        "rewrite": "rewrote rewritten",
        "build": "built",
        "leave": "left departs depart leaving",
        "sell": "sold",
        "buy": "bought",
        "take": "took taken",
        "give": "gave given",
        "break": "broke broken",
        "go": "went gone goes",
        "get": "got gotten gets",
        "drive": "drove driven",
        "hold": "held holds",
        "keep": "kept keeps",
        "pay": "paid pays",
        "teach": "taught",
        "lead": "led leads leitet geleitet dirige",
        "rebuild": "rebuilt",
        "find": "found",
        "supervise": "betreut betreuen betreue",
        "boss": "jefe jefa chef chefin",
        "teacher": "profesor profesora",
        "send": "sent sends",
        "eat": "ate eaten",
        "drink": "drank drunk",
        "lose": "lost",
        "become": "became",
        "quit": "quits quitting",
        "meet": "met meets",
        "grow": "grew grown",
        "rise": "rose risen",
        "fall": "fell fallen",
        "shrink": "shrank shrunk",
        "choose": "chose chosen",
        "draw": "drew drawn",
        "fly": "flew flown",
        "ride": "rode ridden",
        "sing": "sang sung",
        "speak": "spoke spoken",
        "swim": "swam swum",
        "wear": "wore worn",
        "sink": "sank sunk",
        "rebind": "rebound",
        "bring": "brought",
        "sleep": "slept",
        "spend": "spent",
        "withdraw": "withdrew withdrawn",
        "undergo": "underwent",
        "flat": "apartment",
        "holiday": "holidays vacation",
        "ten_thousand": "10k",
    }.items()
    for form in forms.split()
}
"""What is read as another word: inflections that no stemmer cuts, synonyms, other languages."""

FOREIGN: Final = words(
    "der das ist sind und ein eine einen einem ich wir nicht unser unsere unseren mein meine im "
    "auf für wird werden vom zum zur le les une un je nous notre mon ma et dans au aux à est el "
    "los las una nuestro nuestra nuestros mi con está"
)
"""Words by which a sentence in German, French or Spanish is known, as typed in lower case."""
HOMOGRAPHS: Final = {
    "die": "der", "den": "der", "hat": "haben", "war": "waren", "bin": "ist", "son": "sont",
    "pour": "für", "la": "le", "mit": "avec",
}  # fmt: skip
"""English words that are others in these languages, and how they are read there."""

FILLERS: Final = words(
    "the a an this that these those its his her their your just really very quite actually "
    "basically simply already currently please roughly about around approximately own exactly "
    "still some any there here so too_ however hence therefore indeed usually normally "
    "generally typically both all it everyone's per se up out only_ sich auch_ et_ n ne se"
)
BE: Final = words(
    "ist sind wird werden wurde est sont es está están is are am be been being was were 's 're 'm"
)
HAVE: Final = words("has have had having 've haben a_ ont ha han")
DO: Final = words("do does did done")
PAST_AUX: Final = words("was were had did waren hatte était estaba")
PAST_FORMS: Final = words(
    "went came bought sold took gave made got saw met ate drank wrote spoke sent spent lost won "
    "found left built broke chose flew grew fell held paid sat stood wore drew knew began became "
    "forgot said told thought brought caught taught ran swam rose drove slept felt kept led meant "
    "shrank rode sang sank withdrew"
)
PREPS: Final = words(
    "in on at to for of by from with without into onto over under above below after before until "
    "till since during between among through via as off near behind beside within against than "
    "towards"
)
SPECIFIC_PREPS: Final = words(
    "from with without over under above below after before until till since during between among "
    "behind near against than off"
)
GENERIC: Final = _stems(
    "price number amount time date deadline interval size limit fee value level threshold quota "
    "trip flight ticket booking reservation visit version schedule job name location length "
    "duration membership subscription plan "
    "setup tool provider supplier contract position role ownership"
)
"""Nouns that a statement of change names though the state was told without them."""
SUBJECTLESS: Final = words("it this that these those they there he she one which who such")
ADDITIVE: Final = words(
    "also another additionally furthermore moreover besides other others additional "
    "alternatively either neither else second_ likewise again_"
)
CONDITIONS: Final = words(
    "if when whenever unless while where because although though except but so_that than whether "
    "until_ once wenn falls si sauf cuando außer"
)
OPINIONS: Final = words(
    "think thinks thought believe believes guess hope hopes wish wishes suggest suggests propose "
    "proposes feel feels claim claims maybe perhaps probably might could would seems seem "
    "wonder wondering imagine"
)
VAGUE_HEADS: Final = _stems(
    "default value function method parameter argument option result command example output input "
    "following status type name_ thing point way section chapter figure step item case part "
    "decision problem issue solution approach idea reason goal purpose change proposal question "
    "note paragraph class object field key response request return variable list"
)
"""Heads of subjects that every text uses for something of its own."""

WEEKDAYS: Final = (
    WEEKDAY_NUMBERS
    | {f"{name}s": number for number, name in enumerate(WEEKDAY_NAMES["en"])}
    # German adverbs ("montags"), Spanish plurals.
    | {f"{name}s": number for number, name in enumerate(WEEKDAY_NAMES["de"])}
    | {"sábados": 5, "domingos": 6}
)
MONTHS: Final = MONTH_NUMBERS | {
    name[:3]: number for number, name in enumerate(MONTH_NAMES["en"], start=1) if name != "may"
}
DAY_PARTS: Final = words(
    "morning mornings afternoon afternoons evening evenings night nights noon midnight weekend "
    "weekends weekday weekdays"
)
SEASONS: Final = words("spring summer autumn winter christmas easter")

NUMBERS: Final = {
    word: float(value)
    for group in (
        " ".join(CARDINALS),
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "zéro _ deux trois quatre cinq _ sept huit neuf dix onze douze",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
    )
    for value, word in enumerate(group.split())
    if word != "_"
} | {word: 10.0 * value for value, word in enumerate(TENS, start=2)} | {
    "hundred": 100.0, "thousand": 1e3, "dozen": 12.0, "anderthalb": 1.5,
}  # fmt: skip
ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        (
            "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
            "tenth", "eleventh", "twelfth",
        ),
        1,
    )
}  # fmt: skip
SCALES: Final = {"k": 1e3, "thousand": 1e3, "million": 1e6, "millions": 1e6, "m_": 1e6,
                 "billion": 1e9, "hundred": 100.0, "dozen": 12.0}  # fmt: skip
UNITS: Final = {
    name: (kind, factor)
    for kind, factor, names in (
        ("time", 1e-3, "ms millisecond milliseconds msec"),
        ("time", 1.0, "s sec secs second seconds sekunde sekunden seconde secondes segundos"),
        ("time", 60.0, "min mins minute minutes minuten minuto minutos"),
        ("time", 3600.0, "h hr hrs hour hours stunde stunden heure heures hora horas"),
        ("time", 86400.0, "d day days tag tage tagen jour jours día días"),
        ("time", 604800.0, "week weeks woche wochen semaine semaines semana semanas"),
        ("time", 2629800.0, "month months monat monate monaten mois mes meses"),
        ("time", 31557600.0, "year years yr yrs jahr jahre jahren ans année années año años"),
        ("size", 1.0, "b byte bytes"), ("size", 1e3, "kb kib kilobyte kilobytes"),
        ("size", 1e6, "mb mib megabyte megabytes"), ("size", 1e9, "gb gib gigabyte gigabytes"),
        ("size", 1e12, "tb tib terabyte terabytes"),
        ("percent", 1.0, "% percent pct prozent percentage"),
        ("eur", 1.0, "eur euro euros €"), ("eur", 0.01, "cent cents"),
        ("usd", 1.0, "usd dollar dollars $"), ("gbp", 1.0, "gbp pounds £"), ("gbp", 0.01, "pence"),
        ("chf", 1.0, "chf franc francs franken"), ("crowns", 1.0, "crown crowns sek nok dkk czk"),
        ("length", 1e-3, "mm"), ("length", 1e-2, "cm"), ("length", 1.0, "m metre metres meter "
        "meters"), ("length", 1e3, "km kilometre kilometres kilometer kilometers"),
        ("length", 1609.3, "mile miles"),
        ("mass", 1e-6, "mg"), ("mass", 1e-3, "g gram grams"),
        ("mass", 1.0, "kg kilo kilos kilogram kilograms"), ("mass", 1e3, "t tonne tonnes tons"),
        ("degrees", 1.0, "° °c degree degrees celsius"), ("power", 1.0, "w watt watts"),
        ("power", 1e3, "kw"), ("volume", 1.0, "l litre litres liter liters"),
        ("volume", 1e-3, "ml"), ("rate", 1.0, "hz"), ("rate", 1e6, "mhz"), ("rate", 1e9, "ghz"),
    )
    for name in names.split()
}  # fmt: skip
PERIODS: Final = {
    "hourly": 3600.0, "daily": 86400.0, "nightly": 86400.0, "weekly": 604800.0,
    "biweekly": 1209600.0, "fortnightly": 1209600.0, "monthly": 2629800.0, "yearly": 31557600.0,
    "annually": 31557600.0, "annual": 31557600.0, "quarterly": 7889400.0,
    "hour": 3600.0, "day": 86400.0, "night": 86400.0, "week": 604800.0, "fortnight": 1209600.0,
    "month": 2629800.0, "quarter": 7889400.0, "year": 31557600.0, "minute": 60.0, "second": 1.0,
}  # fmt: skip

_VERBS: Final = _stems(
    "live work run use host store keep write build call cost begin end last open close expire "
    "need require take get go come give make move migrate switch change upgrade rename relocate "
    "replace stop quit drop cancel abandon remove retire sell buy lose leave join play speak like "
    "love hate dislike prefer enjoy want know see meet visit own lead manage head maintain "
    "coordinate coach teach study attend report belong depend support include contain allow forbid "
    "prohibit permit ban accept reject send receive handle process serve listen bind connect point "
    "resolve deploy release ship publish push pull merge commit squash test check review approve "
    "sign pay charge bill book order deliver arrive fly travel drive ride walk cycle commute "
    "swim cook bake eat drink smoke sleep sit stand stay park wear carry hold hang sleep sing "
    "read train practise practice learn grow raise lower reduce increase extend shorten postpone "
    "delay reschedule rotate reset renew expire delete archive back sync cover exclude block "
    "encrypt hash compress log track monitor measure count limit cap allow default return show "
    "display print render return fail pass retry wait poll fetch load save cache write happen "
    "separate occur celebrate look care share split contain consist seat employ hire fire offer "
    "provide grant give rent lease borrow lend date marry divorce break stock produce supply "
    "come fit weigh measure reach exceed start schedule plan intend do clean water feed walk "
    "bring set turn put help enforce validate generate trigger invoke assign transfer pass "
    "betreuen nutzen verwenden lauschen utilise utilisent usa usan atiende atienden gehören "
    "exist find supervise graduate resign repair rebuild install reopen thaw fix solve resolve "
    "unblock fill adopt return "
    "stehen sitzen liegen have probt trainiert spielt fährt beträgt betragen betreut gehört"
)

SINGLE: Final = _stems(
    "live reside stay run host store keep write call report belong base locate build implement "
    "sit park deploy happen default point resolve listen bind publish track manage own "
    "lead maintain authenticate bank cost take_place hold train bear found place terminate house "
    "study_at work serve run_by schedule print render expire seat stand book bill commute come "
    "depart arrive be supply provide teach sort heat assign insure enrol register"
)
"""Verbs whose place or complement (with a preposition, or after a passive) is one at a time."""

MANY: Final = _stems(
    "speak like love hate dislike prefer enjoy play practise visit include contain support know "
    "meet see read sell stock buy cover depend own have use offer provide eat drink wear carry "
    "learn study follow accept allow block open need want recommend belong habla hablan spricht "
    "sprechen parle check test produce make get attend travel fly go mention discuss show"
)
"""Verbs that hold of many things at once: another object says nothing about the first."""

HOLDERS: Final = _stems("own lead manage head maintain coordinate coach chair supervise")
"""Verbs that one subject at a time holds of an object."""
TAKEN_OVER: Final = _stems("handle organise organize moderate")
"""Verbs that another one does now: "Bea handles billing now"."""
HOLDER_WORDS: Final = _stems(
    "responsible charge primary owner lead manager maintainer head director chair leader contact "
    "captain boss coach teacher doctor supplier landlord president treasurer secretary default "
    "main winner"
)


KINDS: Final = _groups(
    "red green blue yellow black white brown grey gray orange purple pink beige",
    "postgres postgresql mysql sqlite mariadb oracle mongodb cockroachdb dynamodb cassandra",
    "aws azure gcp hetzner heroku vercel on-premises on-prem",
    "jenkins buildkite circleci travis teamcity gitlab github bitbucket codeberg gitea",
    "kafka rabbitmq nats sqs pulsar activemq",
    "python java rust go ruby php perl scala kotlin typescript javascript elixir haskell c# c++",
    "json xml yaml csv toml protobuf avro parquet",
    "npm yarn pnpm bun", "nginx apache caddy traefik haproxy",
    "terraform pulumi ansible puppet", "elasticsearch opensearch solr meilisearch",
    "slack teams mattermost discord zulip", "jira linear asana trello redmine",
    "tabs spaces", "mit apache gpl agpl bsd mpl proprietary",
    "vegan vegetarian pescatarian omnivore", "small medium large",
    "single married divorced widowed engaged",
    "english french german italian spanish portuguese japanese dutch polish",
    "car bus train tram bike bicycle ferry metro subway foot scooter motorbike e-bike",
    "round-robin fifo lifo lru lfu", "utc cet gmt", "dark light", "soft hard",
    "draft final approved rejected accepted proposed deprecated",
    "internal external", "north south east west", "left right", "junior senior",
)  # fmt: skip
"""Words of one kind that exclude one another of one thing."""

OPPOSITES: Final = {
    (stem(a), stem(b))
    for pair in (
        "open close", "on off", "enabled disabled", "allowed forbidden", "allowed prohibited",
        "allowed banned", "permitted forbidden", "permitted prohibited", "public private",
        "mandatory optional", "required optional", "compulsory optional", "compulsory voluntary",
        "mandatory voluntary", "full empty", "up down", "active inactive", "online offline",
        "manual automatic", "manually automatically", "synchronous asynchronous", "sync async",
        "locked unlocked", "encrypted unencrypted", "free paid", "available unavailable",
        "love hate", "like dislike", "like hate", "love dislike", "enjoy hate", "love loathe",
        "accept reject", "include exclude", "alive dead", "pregnant childless", "working broken",
        "hot cold", "wet dry", "internal external", "remote onsite", "vegetarian meat",
        "full-time part-time", "cheap expensive", "true false", "safe dangerous", "legal illegal",
        "high low", "deny allow", "permit forbid", "booked free", "occupied free", "clean dirty",
        "sick healthy", "unresolved resolve", "unpaid pay", "broken fix", "broken repair",
        "failing passing", "dark light",
        "frozen thaw", "close reopen", "close open", "vacant fill", "pending approve",
        "pending reject", "on disabled", "off enabled", "lock unlock", "unsigned sign",
        "unsolved solve", "unfinished finish", "empty fill", "block unblock", "on off", "valid "
        "expired", "mutable immutable", "in-house outsourced",
    )
    for a, b in (pair.split(), pair.split()[::-1])
}  # fmt: skip

_HOLD: Final = (
    "live reside stay be base locate run host store keep deploy sit meet hold take park happen "
)
_TOOL: Final = "use run host store be build write keep deploy track manage do pay supply get have "
SEVERAL: Final = _stems(
    "sister brother son daughter cousin uncle aunt niece nephew friend colleague neighbour "
    "flatmate child hobby language skill pet customer member partner roommate classmate teammate "
    "lodger grandmother grandfather letter number"
)
ONLY_ONE: Final = _stems("favourite favorite nickname surname motto")
"""Words by which a subject has one value, whatever it is: "my favourite tea"."""
TITLES: Final = _stems("team mr mrs ms dr frau herr company group squad the")
EVENTS: Final = _stems("have go meet see travel fly visit attend")
"""Verbs whose day is that of one occasion among others."""
ALIKE: Final = _groups(
    "have own keep hold employ count contain seat run operate serve",
    "cost charge be sell",
    "last take be",
    "happen be hold meet begin schedule plan",
    "expire last be",
    "live be base reside",
    "run use be host",
    "begin open be",
    "go send be publish appear",
)
"""Verbs that one value may follow with the same meaning."""
STATES: Final = frozenset(word for pair in OPPOSITES for word in pair)

MOVES: Final = {
    stem(verb): _stems(previous)
    for verbs, previous in (
        ("move relocate", _HOLD + "publish track begin work place belong serve"),
        ("migrate switch convert port transition", _TOOL + "live commute go eat drink drive "
         "prefer like work authenticate train study bill run sit host"),
        ("rename rebrand retitle", "call name be"),
        ("rewrite reimplement", "write implement build be use run"),
        ("upgrade downgrade update bump reinstall", "run use be have require need"),
        ("change adjust", "be begin end run use take get have cost expire open close "
         "leave last"),
        ("postpone reschedule delay adjourn shift push", "be begin end open close leave take "
         "happen schedule plan place arrive start"),
        ("raise lower reduce increase extend shorten cut grow shrink rise fall drop double halve "
         "expand jump climb sink", "be have cost last take need hold grant contain seat "
         "run charge employ keep pay get allow expire stand count weigh end"),
        ("replace swap exchange supersede", _TOOL + "need require teach lead manage"),
        ("promote appoint elect", "be work"),
        ("transfer", "be own lead manage coach teach maintain run do handle"),
    )
    for verb in verbs.split()
}  # fmt: skip
"""Verbs of a change towards something, and the verbs of the state that they change."""

ENDS: Final = _stems(
    "leave quit resign return stop drop cancel abandon retire decommission remove delete sell "
    "lose scrap revoke "
    "lift abolish discontinue deprecate resign sunset ditch withdraw divorce close "
    "terminate cease trade disband dismiss"
)
"""Verbs by which what was so ends; their object, or their passive subject, is what ends."""
HANDED_ON: Final = _stems("sell return lose trade withdraw terminate leave lift")
"""Those of them that also tell a habit, or after which the thing goes on elsewhere."""
HAVING: Final = _stems("own have keep drive ride use rent lease hold")
GOING_ON: Final = _stems("belong exist continue run stand")
CANCELS: Final = _stems("cancel scrap abolish discontinue deprecate retire disband close")
VERBS: Final = _VERBS | ENDS | MOVES.keys()
"""Verbs that also look like nouns, or that take no ending after "they"."""

CIRCUMSTANCES: Final = _stems(
    "condition shape order use stock supply demand charge progress trouble danger debt mood favour"
)
"""What something is in beside the place where it is: "in good condition"."""


MAX_CHARS: Final = 400
"""What is read of a text; a claim is shorter."""

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
"""Words of which one is in every text that the pattern matches, the pattern, and what it means."""
_PLACES: Final = {
    hint: tuple(at for at, (hints, *_) in enumerate(_PHRASES) if hint in hints)
    for hint in {hint for hints, *_ in _PHRASES for hint in hints}
}
_WORD: Final = re.compile(r"[^\W\d_]+|:")
# Most texts hold none of these.
_CONTRACTED: Final = re.compile(
    r"['’`´]|\b(?:ne |can ?not\b"
    r"|(?:do|does|did|is|are|was|were|has|have|had|would|could|should|must|need)nt\b)",
    re.IGNORECASE,
)
_PERIODIC: Final = frozenset(
    ("every", "each", "per", "a", "an", "first", "second", "third", "fourth", "last")
)
_TIMED: Final = frozenset({"past", "to", "at"})
_COUNTED: Final = frozenset({"twice", "once", "times"})
_HOURS: Final = CARDINALS[1:13]
_EVERY: Final = re.compile(
    r"\b(?:(?:(?P<times>once|twice|\d+ times|three times|four times) )?"
    r"(?:every|each|per)|(?:(?P<often>once|twice|\d+ times|three times|four times) )?an?(?= "
    r"\w+(?:[.,;]|$| (?:in|on|at|for|by|to|from|now|and|with|since|per)\b))) "
    rf"(?P<count>second|other|third|\d+|{'|'.join(_HOURS)})? ?"
    r"(?P<unit>minute|hour|day|night|week|fortnight|month|quarter|year|weekday|"
    rf"{'|'.join(WEEKDAY_NAMES['en'])}|morning|evening|afternoon|sprint)s?\b(?! ago)"
    rf"|\b(?P<nth>first|second|third|fourth|last) (?P<day>{'|'.join(WEEKDAY_NAMES['en'])})"
    r"(?= (?:of|in) (?:the|each|every) (?:month|term|quarter|year)\b)",
    re.IGNORECASE,
)
# Formulas, labels, list heads and inferences are no statements of their own.
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


def normalise(text: str) -> tuple[str, bool]:
    """Return a text with contractions written out, and whether it can be a plain claim."""
    plain = text.strip()[:MAX_CHARS]
    claim = not _NO_CLAIM.search(plain)
    if _CONTRACTED.search(plain):
        for pattern, replacement in _CONTRACTIONS:
            plain = pattern.sub(replacement, plain)
    return plain, claim and not _PARTLY.search(plain)


def rewrite(text: str) -> str:
    """Return a text in which phrases such as "is not allowed to" are one word each."""
    words = set(_WORD.findall(text.lower()))
    for place in sorted({place for word in words & _PLACES.keys() for place in _PLACES[word]}):
        _, pattern, replacement = _PHRASES[place]
        text = pattern.sub(replacement, text)
    if words & _TIMED:
        text = _CLOCK.sub(_time_of_day, text)
    if words & _PERIODIC:
        text = _EVERY.sub(_period, text)
    return _TIMES.sub(_count, text) if words & _COUNTED else text


_CLOCK: Final = re.compile(
    rf"\b(?:(half|quarter|ten|five|twenty) (past|to) (?P<past>{'|'.join(_HOURS)}|\d\d?)"
    rf"|(?<=\bat )(?P<hour>{'|'.join(_HOURS)})(?=[.,!]?$|[.,]? (?:in the|on|now|every|sharp)\b))\b",
    re.IGNORECASE,
)
_TIMES: Final = re.compile(
    rf"\b(?:(?P<word>twice|once(?=[.,!]?$))|(?P<number>\d+|{'|'.join(_HOURS)}) times)\b",
    re.IGNORECASE,
)


def _time_of_day(match: re.Match[str]) -> str:
    """Return "half past three" and "at seven" in digits."""
    word = (match["past"] or match["hour"]).lower()
    hour = _HOURS.index(word) + 1 if word in _HOURS else int(word)
    part = (match[1] or "").lower()
    minutes = {"": 0, "half": 30, "quarter": 15, "ten": 10, "five": 5, "twenty": 20}[part]
    if (match[2] or "").lower() == "to":
        hour, minutes = hour - 1, 60 - minutes
    return f"{hour % 24}:{minutes:02}"


def _count(match: re.Match[str]) -> str:
    """Return "twice" and "three times" as one word."""
    word = (match["word"] or match["number"]).lower()
    numbers = {"once": 1, "twice": 2} | {hour: at for at, hour in enumerate(_HOURS, 1)}
    return f" times_{numbers.get(word, word)} "


def _period(match: re.Match[str]) -> str:
    """Return "every second Tuesday" and "once a week" as one word, ``every=…``."""
    if match["nth"]:
        return f" every_{match['day'].lower()}_{match['nth'].lower()}_1 "
    unit = match["unit"].lower()
    count = (match["count"] or "1").lower()
    numbers = {"second": 2, "other": 2, "third": 3} | {
        word: at for at, word in enumerate(_HOURS, 1)
    }
    number = numbers.get(count) or int(count)
    often = (match["times"] or match["often"] or "once").lower().split()[0]
    times = int(often) if often.isdigit() else {"twice": 2, "three": 3, "four": 4}.get(often, 1)
    return f" every_{unit}_{number}_{times} "
