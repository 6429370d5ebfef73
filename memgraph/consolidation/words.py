"""English words by what they do in a sentence. All lower case, apostrophes straight."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*+")


class Word(NamedTuple):
    """A word as written, in lower case with a straight apostrophe, and its place."""

    text: str
    lower: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """The words of ``text`` in order; a contraction is one word, and so is ``well-known``."""
    return [
        Word(found[0], found[0].lower().replace("’", "'"), *found.span())
        for found in _WORD.finditer(text)
    ]


def word_list(text: str) -> frozenset[str]:
    return frozenset(text.split())


ADVERBS: Final = word_list(
    "really just also always never usually often still already finally recently actually "
    "definitely even only probably sometimes currently now ever kinda totally truly first soon "
    "generally mostly rarely hardly almost absolutely basically literally simply certainly "
    "honestly fully deeply normally typically regularly mainly quickly slowly early once twice "
    "too not maybe perhaps possibly both all later previously originally especially "
    "particularly seriously genuinely clearly obviously then since lately quite well "
    "formally officially personally strongly kindly gladly happily sadly luckily fortunately "
    "eventually initially constantly frequently occasionally highly greatly nearly barely"
)
MODALS: Final = word_list(
    "will would can could should may might must shall won't wouldn't can't cannot couldn't "
    "shouldn't mustn't shan't mightn't needn't 'll wont cant"
)
AUXILIARIES: Final = MODALS | word_list(
    "am is are was were be been being has have had do does did isn't aren't wasn't weren't "
    "hasn't haven't hadn't don't doesn't didn't ain't i'm i've i'd i'll we're we've we'd we'll "
    "you're you've you'd you'll he's she's it's that's there's they're they've they'll he'll "
    "she'll it'll what's who's"
)
# Past forms that differ from the base form.
PASTS: Final = word_list(
    "was were had did went got made took came saw knew thought gave found told felt left kept "
    "began brought bought built caught chose drew drove drank ate fell flew forgot fought froze "
    "grew hung heard held hid led lent lost meant met paid rang ran rose rode said sang sat sold "
    "sent shook shot slept spoke spent stood stole stuck struck swam swept swore taught threw "
    "tore understood woke won wore wrote broke became bent blew bound bred crept dealt dug fed "
    "fled forgave knelt leapt learnt dreamt burnt lit overcame overslept rewrote sank shone slid "
    "sought sped spilt spun sprang stank stung strode strove swung undertook undid withdrew wove "
    "shrank spat misunderstood mistook outgrew overheard redid rebuilt resold retold didn't "
    "wasn't weren't hadn't used"
)
PARTICIPLES: Final = word_list(
    "been gone done seen taken given known written spoken eaten driven ridden broken chosen "
    "forgotten fallen flown grown drawn begun run come become worn thrown sworn woken had got "
    "gotten made met left lost found told heard read put set sold built bought brought thought "
    "taught caught kept paid won"
)
# Present and past look alike.
UNCHANGING: Final = word_list(
    "read put cut let set hit quit cost hurt shut spread bet cast split beat upset burst "
    "broadcast fit bid lay"
)
NOT_PAST: Final = word_list(
    "need feed bleed breed speed proceed succeed exceed heed seed weed embed shed wed shred sled "
    "agreed-upon indeed red bed"
)
BASES: Final = word_list(
    "accept achieve add admire adopt advise agree aim allow appreciate apply argue arrange arrive "
    "ask attend avoid bake be believe belong bike borrow break bring build buy call camp care "
    "carry catch celebrate change chat check choose clean climb coach collect come commute "
    "complete consider contact cook create cycle dance date decide deliver depend design develop "
    "dislike do draw dream drink drive earn eat encourage enjoy exercise expect explore face fear "
    "feed feel fight find finish fix fly focus follow forget garden get give go grow guide handle "
    "happen hate have hear help hike hope identify imagine improve invest invite join juggle keep "
    "know lead learn leave lend like listen live look lose love maintain make manage mean meditate "
    "meet mentor miss move need notice offer open order organise organize own paint participate "
    "pay perform pick plan play post practice practise pray prefer prepare produce provide publish "
    "raise reach receive recommend record relax rely remain remember rent repair report request "
    "research rest return ride run save say schedule see seem sell send serve share shop show sing "
    "sit skate ski sleep smoke speak spend stand start stay stop struggle study suffer suggest "
    "support surf swim switch take talk teach tell tend test thank think train travel treat try "
    "understand use value visit volunteer wait wake walk want watch wear win wish wonder work "
    "worry write"
)
# At the head of a sentence without a subject these are told to somebody.
IMPERATIVES: Final = BASES | word_list(
    "act adjust analyse analyze answer assume avoid bear behave compare compose compute confirm "
    "consult continue convert copy count debug define delete describe disable discard disregard "
    "download draft email enable ensure erase evaluate examine execute explain extract fetch fill "
    "format generate grant ignore implement include increase insert install interpret investigate "
    "keep list log merge modify name note obey output override overwrite paste pretend print "
    "proceed process promote prove push put read recall refactor refer reject remind remove rename "
    "repeat replace reply reset respond restart retract reveal review rewrite roll search select "
    "set shut skip solve sort store submit summarise summarize tag tell translate trust turn type "
    "update upload verify wipe don't never please let let's lets do dont enjoy hang imagine go "
    "hold hope wish thank cheer rock glad"
)
DETERMINERS: Final = word_list(
    "a an the my our your his her their its some any every each another this that these those "
    "two three four five six seven eight nine ten no one many several most both all few "
    "first last next"
)
PREPOSITIONS: Final = word_list(
    "in on at for with to from by of about into through over after before during around near "
    "as under without against between among towards toward across behind up down out off back "
    "there here home every because when while since"
)
# What never follows a subject as its main verb.
FUNCTION: Final = (
    DETERMINERS
    | PREPOSITIONS
    | word_list(
        "and but or nor so yet if than then though although until unless whether who whom whose "
        "which what where why how i me myself you we us they them he him she it its it's yes no "
        "ok okay too either neither not more less else guys"
    )
)
# Common words that are not words of a neighbouring language too.
ENGLISH: Final = (ADVERBS | AUXILIARIES | PASTS | BASES | FUNCTION | {"of", "i"}) - word_list(
    "in an was so me no am do as on is has he a at or most some all of to come son once after over "
    "under we will her there also still not all well since ring bring plan test film gas use lead "
    "are can den des die den us per via pay order note part later may son us if up us if "
    "start stop live last fit record sport most son war had met"
)
# The commonest words of neighbouring languages, as far as English has no such words.
FOREIGN: Final = word_list(
    "ich wir und der das ist nicht ein eine einen mit für auf zu ihr mein meine sie sind wird auch "
    "el la los las un una y en de con por para que es yo mi mis soy está je nous le les des du et "
    "est dans pour avec mon ma une il che per non sono ho mio mia gli della uma os em com não eu "
    "meu minha het een van ik niet mijn wij zijn og jeg ikke och jag inte är w na się nie jest"
)
RIVALS: Final = word_list(
    "they them their theirs themselves people kids children family parents friends everyone "
    "everybody team group couple guys folks men women students colleagues coworkers neighbours "
    "neighbors someone somebody anyone he she him her his hers"
)
_NOT_PLURAL: Final = word_list(
    "is was has does this its his us as thus yes always sometimes perhaps besides plus bus "
    "gas class business process progress glass boss less across unless lots news series tennis "
    "yoga's towards afterwards nowadays christmas"
)


def is_past(word: str) -> bool:
    """Whether a lower-case word is a past form and nothing else."""
    if word in PASTS:
        return True
    return len(word) > 3 and word.endswith("ed") and word not in NOT_PAST and "-" not in word


def is_plural(word: str) -> bool:
    """Whether a lower-case word looks like a plural noun."""
    return (
        len(word) > 3
        and word.endswith("s")
        and not word.endswith(("ss", "'s", "ous"))
        and word not in _NOT_PLURAL
    )


def third_person(base: str) -> str:
    """The form of a verb after he, she or it: ``go``, ``goes``; ``try``, ``tries``."""
    irregular = {"have": "has", "do": "does", "be": "is", "go": "goes", "don't": "doesn't"}
    if base in irregular:
        return irregular[base]
    if base == "haven't":
        return "hasn't"
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{base}s"
