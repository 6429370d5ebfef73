"""Word lists for comparing statements: mostly English, some German, French and Spanish."""

from __future__ import annotations

from typing import Final

from memgraph.text.stem import stem

MONTH_NAMES: Final = {
    language: tuple(names.split())
    for language, names in {
        "en": "january february march april may june july august september october november "
        "december",
        "de": "januar februar märz april mai juni juli august september oktober november dezember",
        "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre "
        "décembre",
        "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
        "diciembre",
    }.items()
}
MONTH_NUMBERS: Final = {
    name: number for names in MONTH_NAMES.values() for number, name in enumerate(names, start=1)
}
"""The number of a month, 1 to 12, by its full name in any of the languages."""
WEEKDAY_NAMES: Final = {
    language: tuple(names.split())
    for language, names in {
        "en": "monday tuesday wednesday thursday friday saturday sunday",
        "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "es": "lunes martes miércoles jueves viernes sábado domingo",
    }.items()
}
WEEKDAY_NUMBERS: Final = {
    name: number for names in WEEKDAY_NAMES.values() for number, name in enumerate(names)
}
"""The number of a weekday, 0 (Monday) to 6, by its full name in any of the languages."""
CALENDAR: Final = frozenset((*MONTH_NAMES["en"], *WEEKDAY_NAMES["en"]))
"""Names of months and weekdays, which English capitalises anywhere in a sentence."""


_NEGATIONS: Final = "not no never none nobody nothing nowhere nor cannot without"
NEGATIONS: Final = tuple(_NEGATIONS.split())
FIRST_PERSON: Final = frozenset({"i", "my", "me", "mine", "we", "our", "us", "myself"})
_STOP_WORDS: Final = """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing done down during each ever few for from further
    get got had has have having he her here hers him his how i if in into is it its just like
    many me might more most much must my no nor not of off on once only or other our out over own s
    said same shall she should so some such t than that the their them then there these they this
    those through to too under until up very was we were what when where which while who whom
    why will with would you your yours
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words that a search ignores."""


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
"""Words that are replaced by another: irregular inflections, synonyms, foreign words."""

FOREIGN: Final = words(
    "der das ist sind und ein eine einen einem ich wir nicht unser unsere unseren mein meine im "
    "auf für wird werden vom zum zur le les une un je nous notre mon ma et dans au aux à est el "
    "los las una nuestro nuestra nuestros mi con está"
)
"""Lower-case words that identify a sentence as German, French or Spanish."""
HOMOGRAPHS: Final = {
    "die": "der", "den": "der", "hat": "haben", "war": "waren", "bin": "ist", "son": "sont",
    "pour": "für", "la": "le", "mit": "avec",
}  # fmt: skip
"""English words that mean something else in these languages, with their replacements."""

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
"""Nouns that a statement of a change may contain although the earlier statement did not."""
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
"""Head nouns of subjects that mean something different in each text."""

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
"""Verbs with only one place or complement at a time (after a preposition or a passive)."""

MANY: Final = _stems(
    "speak like love hate dislike prefer enjoy play practise visit include contain support know "
    "meet see read sell stock buy cover depend own have use offer provide eat drink wear carry "
    "learn study follow accept allow block open need want recommend belong habla hablan spricht "
    "sprechen parle check test produce make get attend travel fly go mention discuss show"
)
"""Verbs that can be true of many objects at once: a new object does not replace the old one."""

HOLDERS: Final = _stems("own lead manage head maintain coordinate coach chair supervise")
"""Verbs that have only one subject at a time for an object."""
TAKEN_OVER: Final = _stems("handle organise organize moderate")
"""Verbs whose subject changes when a task is taken over: "Bea handles billing now"."""
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
"""Groups of words that exclude one another for the same subject."""

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
ONLY_ONE: Final = _stems("favourite favorite go-to nickname surname motto")
"""Words that give any subject exactly one value: "my favourite tea"."""
TITLES: Final = _stems("team mr mrs ms dr frau herr company group squad the")
EVENTS: Final = _stems("have go meet see travel fly visit attend")
"""Verbs of events that occur repeatedly, so that two days do not contradict each other."""
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
"""Groups of verbs that have the same meaning when followed by the same value."""
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
        ("postpone reschedule delay adjourn shift push slip", "be begin end open close leave take "
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
"""Verbs of change, with the verbs of the states that they change."""

ENDS: Final = _stems(
    "leave quit resign return stop drop cancel abandon retire decommission remove delete sell "
    "lose scrap revoke "
    "lift abolish discontinue deprecate resign sunset ditch withdraw divorce close "
    "terminate cease trade disband dismiss"
)
"""Verbs that end a state; what ends is their object, or their subject in the passive."""
HANDED_ON: Final = _stems("sell return lose trade withdraw terminate leave lift")
"""Verbs of ``ENDS`` that may also state a habit, or after which the thing continues elsewhere."""
HAVING: Final = _stems("own have keep drive ride use rent lease hold")
GOING_ON: Final = _stems("belong exist continue run stand")
CANCELS: Final = _stems("cancel scrap abolish discontinue deprecate retire disband close")
VERBS: Final = _VERBS | ENDS | MOVES.keys()
"""Verbs that also look like nouns, or that take no ending after "they"."""

CIRCUMSTANCES: Final = _stems(
    "condition shape order use stock supply demand charge progress trouble danger debt mood favour"
)
"""Nouns that follow "in" but are not places: "in good condition"."""
