"""Words that several modules need: months, weekdays, numbers, negations, stop words."""

from __future__ import annotations

from typing import Final

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
_CARDINALS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
CARDINALS: Final = tuple(_CARDINALS.split())
"""The English words for 0 to 19, by number."""
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
