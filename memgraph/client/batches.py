"""Many items at a time: checked here, sent in batches, one outcome for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from memgraph.client.calls import Read, part_of
from memgraph.errors import InvalidInput, RemoteAnswerInvalid
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.remote import MAX_BATCH, Outcomes
from memgraph.model.values import MemoryInput, Outcome, validated

if TYPE_CHECKING:
    from memgraph.client.exchange import Course
    from memgraph.client.files import Place

MAX_BYTES: Final = 2_000_000
"""Maximum bytes of the items of one request: half of a server's default limit."""

Item = MemoryInput | Mapping[str, Any]
_OUTCOMES: Read[Sequence[Outcome]] = part_of(Outcomes, lambda told: told.outcomes)


def store_all(
    place: Place, path: str, kind: type[MemoryInput], items: Iterable[Item]
) -> Course[list[Outcome]]:
    """Store items batch by batch; an invalid one is rejected by itself, and not sent."""
    outcomes: list[Outcome] = []
    for batch in batches(_checked(kind, each) for each in items):
        sent = [each for each in batch if not isinstance(each, Outcome)]
        stored: Sequence[Outcome] = ()
        if sent:
            stored = yield from place._ask(place._write(path, {"items": sent}, _OUTCOMES))
        if len(stored) != len(sent):
            raise RemoteAnswerInvalid("the server told of another number of items than it got")
        waiting = iter(stored)
        outcomes += [each if isinstance(each, Outcome) else next(waiting) for each in batch]
    return outcomes


def batches(
    items: Iterable[dict[str, Any] | Outcome],
) -> Iterator[list[dict[str, Any] | Outcome]]:
    """Yield batches in order, each of at most `MAX_BATCH` items and about `MAX_BYTES`."""
    batch: list[dict[str, Any] | Outcome] = []
    size = 0
    for each in items:
        cost = 0 if isinstance(each, Outcome) else _size(each)
        if batch and (len(batch) == MAX_BATCH or size + cost > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += cost
    if batch:
        yield batch


def _checked(kind: type[MemoryInput], item: Item) -> dict[str, Any] | Outcome:
    try:
        given = validated(kind, _fields(item))
    except InvalidInput as error:
        return Outcome(outcome="rejected", code=error.code, message=error.message)
    return given.model_dump(mode="json", exclude_unset=True)


def _fields(item: Item) -> dict[str, Any]:
    if isinstance(item, UserTurn | AgentTurn):
        raise InvalidInput("a server takes turns as EpisodeInput, whose role says who spoke")
    if isinstance(item, MemoryInput):
        return {name: getattr(item, name) for name in item.model_fields_set}
    if isinstance(item, Mapping):
        return dict(item)
    raise InvalidInput("an item is a mapping of fields, or a MemoryInput")


def _size(item: Mapping[str, Any]) -> int:
    """Return the approximate size as JSON, bytes; free texts are what can be long."""
    return len(json.dumps(item, ensure_ascii=False).encode("utf-8"))
