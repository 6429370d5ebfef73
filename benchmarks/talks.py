"""Sessions made up by a seeded generator: people who tell of themselves, ask back and repeat.

What consolidation costs depends on how many turns hold a labelled sentence, and how often that was
said before. So a third of the turns tell something, some of it labelled; the rest is small talk and
words without meaning.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from benchmarks.synthetic import corpus

TURNS = 20
_FIRST_TIME = 1_700_000_000_000
_DAY, _MINUTE = 86_400_000, 60_000
_TELLING, _SMALL = 0.35, 0.3
_STARTS = ("Al", "Be", "Ca", "Do", "El", "Fa", "Go", "Ha", "In", "Jo", "Ka", "Le", "Mi", "No")
_ENDS = ("bert", "dina", "fred", "lina", "mund", "nora", "rico", "sia", "tina", "vin", "win", "zia")
_CITIES = ("Berlin", "Lisbon", "Prague", "Oslo", "Naples", "Ghent", "Turin", "Porto", "Malmö")
_THINGS = ("chess", "pottery", "sailing", "gardening", "climbing", "origami", "carpentry", "tango")
_DRINKS = ("green tea", "black coffee", "apple juice", "oat milk", "mint tea", "hot chocolate")
_JOBS = ("nurse", "baker", "teacher", "plumber", "librarian", "surveyor", "gardener", "pilot")
_SAYINGS = (
    "Fact: I live in {city} with my {number} cats.",
    "I work as a {job} in the hospital of {city}.",
    "Preference: {drink} to {drink2} in the morning.",
    "Goal: learn {thing} before I turn {age}.",
    "TODO: renew the passport of my son by {day} May 2026.",
    "I started {thing} {number} years ago and I still love it.",
    "My sister moved to {city} because of her job as a {job}.",
    "I decided to sell the old car and to buy a bicycle for {price} euros.",
    "Decision: we meet in {city} for the {thing} course in June.",
    "I am allergic to {drink} and to cats.",
    "My brother plays {thing} with {number} friends from {city}.",
    "I no longer drink {drink} in the evening.",
)
_SMALL_TALK = (
    "Ok, thanks!",
    "How are you today?",
    "That sounds great, tell me more.",
    "What do you think about it?",
    "Haha, yes.",
    "See you tomorrow then!",
    "Really? I did not know that.",
)


def talks(sessions: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Turns of so many sessions, in order, as ``save_episodes`` takes them."""
    for number in range(sessions):
        yield from _talk(number, seed)


def _talk(number: int, seed: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(f"{seed}-talk-{number}")
    people = [chance.choice(_STARTS) + chance.choice(_ENDS) for _ in range(2)]
    for place in range(TURNS):
        yield {
            "content": _said(chance, number * TURNS + place, seed),
            "session_id": f"talk-{number}",
            "source_role": people[place % 2],
            "event_time": _FIRST_TIME + number * _DAY + place * _MINUTE,
        }


def _said(chance: random.Random, turn: int, seed: int) -> str:
    kind = chance.random()
    if kind < _TELLING:
        return chance.choice(_SAYINGS).format(
            city=chance.choice(_CITIES),
            job=chance.choice(_JOBS),
            thing=chance.choice(_THINGS),
            drink=chance.choice(_DRINKS),
            drink2=chance.choice(_DRINKS),
            number=chance.randint(2, 9),
            age=chance.randint(4, 7) * 10,
            day=chance.randint(1, 30),
            price=chance.randint(20, 90) * 10,
        )
    if kind < _TELLING + _SMALL:
        return chance.choice(_SMALL_TALK)
    return corpus(seed).text(turn)
