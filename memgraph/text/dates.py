"""Names of months and weekdays in the languages that the rules read, in lower case."""

from __future__ import annotations

from typing import Final

MONTHS: Final = {
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
    name: number for names in MONTHS.values() for number, name in enumerate(names, start=1)
}
"""Number 1 to 12 by the full name in any of the languages."""
WEEKDAYS: Final = {
    language: tuple(names.split())
    for language, names in {
        "en": "monday tuesday wednesday thursday friday saturday sunday",
        "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "es": "lunes martes miércoles jueves viernes sábado domingo",
    }.items()
}
WEEKDAY_NUMBERS: Final = {
    name: number for names in WEEKDAYS.values() for number, name in enumerate(names)
}
"""Number 0 (Monday) to 6 by the full name in any of the languages."""
