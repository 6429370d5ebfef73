"""Units and number words, in base units: seconds, bytes, metres, kilograms, percent."""

from __future__ import annotations

from typing import Final

UNITS: Final = {
    name: (dimension, factor)
    for dimension, factor, names in (
        ("time", 0.001, "ms millisecond milliseconds msec"),
        ("time", 1.0, "s sec secs second seconds sekunde sekunden seconde secondes segundo "
        "segundos 秒"),
        ("time", 60.0, "min mins minute minutes minuten minuto minutos 分"),
        ("time", 3600.0, "h hr hrs hour hours stunde stunden heure heures hora horas 時間"),
        ("time", 86400.0, "d day days tag tage tagen jour jours día días 日間"),
        ("time", 604800.0, "week weeks woche wochen semaine semaines semana semanas 週間"),
        ("time", 2592000.0, "month months monat monate monaten mois mes meses か月 ヶ月"),
        ("time", 31536000.0, "year years jahr jahre jahren an ans année año años yrs 年間"),
        ("size", 1.0, "byte bytes"), ("size", 1e3, "kb kib kilobyte kilobytes"),
        ("size", 1e6, "mb mib megabyte megabytes meg megs"),
        ("size", 1e9, "gb gib gigabyte gigabytes gig gigs"), ("size", 1e12,
        "tb tib terabyte terabytes"),
        ("share", 1.0, "% percent pct prozent percentage 割 パーセント"),
        ("money", 1.0, "eur euro euros € usd dollar dollars $ chf franc francs gbp pound pounds £ "
                       "franken pesos yen jpy 円 ユーロ sek kronor"),
        ("money", 0.01, "cent cents pence"),
        ("length", 0.001, "mm millimetre millimetres"), ("length", 0.01,
        "cm centimetre centimetres"),
        ("length", 1.0, "m metre metres meter meters"), ("length", 1e3, "km kilometre kilometres"),
        ("mass", 0.001, "g gram grams"), ("mass", 1.0, "kg kilo kilos kilogram kilograms"),
        ("mass", 1e3, "t tonne tonnes ton tons"),
        ("temperature", 1.0, "°c °f ° degree degrees grad degrés grados celsius 度"),
        ("speed", 1.0, "km/h kmh mph"), ("power", 1.0, "w watt watts"), ("power", 1e3,
        "kw kilowatt"),
        ("energy", 1.0, "kwh"), ("volume", 1.0, "l litre litres liter liters"),
        ("volume", 0.001, "ml millilitre"), ("frequency", 1.0, "hz"), ("frequency", 1e3, "khz"),
        ("frequency", 1e6, "mhz"), ("frequency", 1e9, "ghz"),
    )
    for name in names.split()
}  # fmt: skip

SMALL: Final = {
    word: float(value)
    for value, words in enumerate(
        ["zero null", "one eins einen", "two zwei deux dos twice zweimal",
        "three drei trois tres thrice", "four vier quatre cuatro", "five fünf cinq cinco",
        "six sechs seis", "seven sieben sept siete", "eight acht huit ocho",
        "nine neun neuf nueve", "ten zehn dix diez", "eleven elf onze once_",
        "twelve zwölf douze doce", "thirteen dreizehn treize trece",
        "fourteen vierzehn quatorze catorce", "fifteen fünfzehn quinze quince", "sixteen",
        "seventeen", "eighteen", "nineteen", "twenty zwanzig vingt veinte"]
    )
    for word in words.split()
} | {
    "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0,
    "ninety": 90.0, "dreißig": 30.0, "trente": 30.0, "treinta": 30.0,
}  # fmt: skip
SCALE: Final = {"dozen": 12.0, "hundred": 100.0, "thousand": 1e3, "million": 1e6, "millions": 1e6,
                 "billion": 1e9, "k": 1e3, "mio": 1e6, "tausend": 1e3,
                 "hundert": 100.0}  # fmt: skip
ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        1,
    )
}
