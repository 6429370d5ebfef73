"""Words of a short statement: how they are cut, reduced to a stem, and grouped by meaning."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_WORD: Final = re.compile(
    r"[A-Za-zÀ-ÖØ-öø-ÿĀ-žΑ-ω][\w'’]*(?:[-.:/@][\w]+)*"
    r"|[0-9]+(?:[.,:][0-9]+)*\w*(?:-\w+)*"
    r"|[぀-ヿ㐀-鿿々]+"
    r"|[.;,:!?()#%€$°&→=—–]"
)
_CJK: Final = re.compile(r"[぀-ヿ㐀-鿿々]")
_CLAUSE_END: Final = frozenset(".;,:!?()—–")
_SENTENCE_END: Final = frozenset(".!?:")
_CODE: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.-]{2,}|\w+_\w+|\w+/\w+\S*|\w+\.\w{2,4}")

_IRREGULAR: Final = {
    form: base
    for base, forms in {
        "swim": "swam swum", "buy": "bought", "sell": "sold", "bring": "brought",
        "eat": "ate eaten",
        "drink": "drank drunk", "write": "wrote written", "drive": "drove driven",
        "ride": "rode ridden",
        "speak": "spoke spoken", "send": "sent", "spend": "spent", "lose": "lost", "win": "won",
        "find": "found", "meet": "met", "leave": "left", "sleep": "slept", "teach": "taught",
        "build": "built", "rebuild": "rebuilt", "break": "broke broken", "choose": "chose chosen",
        "fly": "flew flown flies flight", "grow": "grew grown", "rise": "rose risen",
        "fall": "fell fallen", "hold": "held", "pay": "paid", "sit": "sat", "stand": "stood",
        "understand": "understood", "wear": "wore worn", "steal": "stole stolen",
        "throw": "threw thrown",
        "draw": "drew drawn", "know": "knew known", "feed": "fed", "lend": "lent",
        "bear": "born bore",
        "sign": "signature signatory", "child": "children kids kid", "man": "men", "woman": "women",
        "person": "people persons", "mouse": "mice", "foot": "feet", "tooth": "teeth",
        "life": "lives",
        "shelf": "shelves", "company": "companies", "company-": "", "policy": "policies",
        "begin": "began begun", "become": "became", "forget": "forgot forgotten",
        "lie": "lay lain lying",
        "hide": "hid hidden", "hang": "hung", "catch": "caught", "rebuildt": "",
        "die": "died dies dead",
        "deploy": "deployment deployments", "encrypt": "encryption",
        "approve": "approval approvals",
        "decide": "decision decisions", "deliver": "delivery deliveries",
        "migrate": "migration migrations",
        "retain": "retention", "expire": "expiry expiration", "allergy": "allergic allergies",
        "pregnancy": "pregnant", "marry": "marriage married", "renew": "renewal",
        "fail": "failure failures",
        "analyse": "analysis", "live": "living lived", "reside": "residence",
        "own": "owner owned owns",
        "inspect": "inspection", "insure": "insurance", "configure": "configuration config",
        "invite": "invitation", "cache": "caching", "log": "logs logging logged",
        "cancel": "cancellation",
        "refund": "reimbursement", "restart": "reboot", "weigh": "weight", "deep": "depth",
        "long": "length", "high": "height", "wide": "width", "fast": "speed", "hot": "heat heating",
        "compress": "compression gzip", "resign": "resignation", "accept": "acceptance",
        "sort": "sorting",
        "round": "rounding", "hash": "hashing hashed", "test": "testing tests",
        "found": "founded founding",
        "french": "français", "vegetarian": "vegetarians", "employ": "employee employees employer",
    }.items()
    for form in forms.split()
}  # fmt: skip

# Words that name one attribute or act in short notes; hand-made, each group one concept.
_CONCEPTS: Final = (
    "live reside home flat apartment house dwell household relocate stay living",
    "manager boss supervisor report lead head superior chief",
    "pay settle bill charge cost price fee rate rent paying payment free",
    "employ headcount staff workforce personnel",
    "born birthplace birth bear native come",
    "outage down unavailable downtime offline incident crash",
    "retain keep store save hold archive",
    "delete remove drop erase purge wipe discard",
    "limit cap maximum ceiling quota exceed threshold limited",
    "permit allow may authorise authorize let permission allowed lawful admit admitted",
    "forbid ban prohibit forbidden disallow",
    "start begin commence launch kick open",
    "end finish stop expire terminate close conclude run",
    "fast quick speed rapid",
    "buy purchase acquire order procure",
    "car vehicle drive auto",
    "doctor physician gp",
    "phone telephone call mobile landline number",
    "mail email e-mail message letter",
    "child kid son daughter baby",
    "brother sister sibling",
    "wife husband spouse partner marry",
    "meat lamb beef pork steak chicken ham sausage bacon vegetarian vegan roast",
    "milk latte cappuccino cream dairy cheese butter yoghurt",
    "coffee espresso latte cappuccino",
    "alcohol wine beer whisky gin vodka rum drunk sober",
    "gluten wheat bread flour pasta rolls coeliac",
    "sugar sweet cake chocolate candy dessert",
    "nut peanut hazelnut walnut almond",
    "shellfish prawn shrimp crab lobster mussel oyster fish seafood",
    "allergy hives intolerance reaction",
    "cause reason root because due origin",
    "deploy release ship rollout publish",
    "merge integrate land",
    "test suite check testing",
    "approve sign-off approval consent authorise sign",
    "bug error defect fault failure",
    "retry attempt re-send resend redelivery again try",
    "timeout expire idle",
    "token session login",
    "password passcode code pin key secret credential",
    "disk storage drive volume",
    "memory ram heap",
    "thread worker process concurrency parallel",
    "replica copy mirror backup",
    "host server machine box node instance",
    "customer client buyer user",
    "contract agreement lease deal",
    "holiday leave vacation off day-off",
    "office desk workplace bureau",
    "flight plane fly departure airline",
    "train rail railway tram line",
    "bike bicycle cycle cycling",
    "walk foot stroll",
    "job task run cron",
    "doc documentation manual handbook wiki guide",
    "room hall space",
    "picture image photo",
    "fix repair mend patch",
    "broken defective faulty dead kaputt defekt",
    "like love enjoy fond favourite favorite prefer keen adore",
    "dislike hate detest loathe stand",
    "know understand speak fluent language word",
    "write author written wrote note",
    "study paper experiment trial article",
    "participant subject respondent sample volunteer people",
    "company firm business",
    "school university college degree doctorate phd thesis",
    "lawyer attorney legal solicitor",
    "court judge ruling hearing lawsuit sue",
    "size dimension dim length width",
    "default standard preset",
    "licence license licensed",
    "language written codebase code",
    "database db table postgres mysql",
    "meeting meet session appointment call",
    "meet met encounter",
    "warranty guarantee",
    "delivery deliver arrive shipment parcel",
    "temperature degree thermostat heating fever",
    "guest visitor",
    "cat kitten feline",
    "dog puppy",
    "play instrument cello violin piano guitar musician cellist",
    "orchestra band choir",
    "sleep bed bedtime",
    "tv television screen telly",
    "population inhabitant resident",
    "depend require need dependency pull",
    "support compatible work",
    "hash bcrypt argon2",
    "encrypt plain-text plaintext cleartext unencrypted plain",
    "answer reply respond response",
    "ask request enquire",
    "fridge freezer refrigerator",
    "scanner scan upload",
    "weekly week", "daily day nightly night tag", "monthly month", "yearly annual annually year",
    "quarterly quarter vierteljährlich", "hourly hour",
    "lift elevator aufzug ascenseur",
    "rise increase raise grow climb",
    "fall decrease drop shrink reduce",
    "sick ill illness disease",
    "blind sight vision eye eyesight colour-blind",
    "deaf hearing ear hear",
    "sibling only-child",
    "locked lock locking",
)  # fmt: skip


class Token(NamedTuple):
    """One word or sign: as typed, lower case, its stem, clause number, and where it stands."""

    text: str
    low: str
    stem: str
    clause: int
    initial: bool


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A lower-case word without its inflection, light and English; at least three letters stay."""
    word = word.replace("’", "'")
    for ending in ("'s", "s'", "'"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            word = word[: -len(ending)]
            break
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, instead in (
        ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"),
        ("ied", "y"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""),
    ):  # fmt: skip
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            if ending == "s" and word.endswith(("ss", "us", "is")):
                break
            base = word[: -len(ending)] + instead
            if ending in {"ing", "ed"} and len(base) > 3 and base[-1] == base[-2]:
                base = base[:-1] if base[-1] not in "ls" else base
            return _IRREGULAR.get(base, base).removesuffix("e") or base
    return word.removesuffix("e") if len(word) > 4 else word


def _concept_table() -> dict[str, frozenset[int]]:
    table: dict[str, set[int]] = {}
    for number, group in enumerate(_CONCEPTS):
        for word in group.split():
            table.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in table.items()}


_CONCEPT_OF: Final = _concept_table()
_NO_CONCEPT: Final[frozenset[int]] = frozenset()


def concepts(stemmed: str) -> frozenset[int]:
    """The concept groups that a stem belongs to; mostly none."""
    return _CONCEPT_OF.get(stemmed, _NO_CONCEPT)


def is_code(text: str) -> bool:
    """Whether a word looks like an identifier, a file or a host rather than a word or number."""
    return bool(_CODE.fullmatch(text)) and not text[0].isdigit()


def is_cjk(text: str) -> bool:
    return bool(_CJK.search(text))


def tokenize(text: str) -> list[Token]:
    """Cut a text into words and signs. A run of Chinese or Japanese becomes its bigrams."""
    tokens: list[Token] = []
    clause, initial = 0, True
    for match in _WORD.finditer(text):
        word = match.group()
        if word in _CLAUSE_END:
            clause += 1
            initial = initial or word in _SENTENCE_END
            continue
        if is_cjk(word):
            grams = [word[i : i + 2] for i in range(len(word) - 1)] or [word]
            tokens += [Token(gram, gram, gram, clause, False) for gram in grams]
        else:
            low = word.lower().replace("’", "'").rstrip(".")
            tokens.append(Token(word, low, stem(low), clause, initial))
        initial = False
    return tokens
