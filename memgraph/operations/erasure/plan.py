"""The plan of an erasure: what it takes and searches for, kept on disk to survive a crash.

The plan holds the texts themselves: once the rows lack them, nothing else knows what to search for.
It is a file beside the database that only its owner can read, and is overwritten and removed at the
end of the erasure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from memgraph.audit.search_terms import SearchTerms
from memgraph.errors import StorageError
from memgraph.model.erasure import ErasureTargetKind, NotErasedMemory
from memgraph.paths import OrchestratorPaths
from memgraph.rules.erasure import is_long
from memgraph.store.files import draft_beside, fsync, publish
from memgraph.text.fold import fold

_VERSION: Final = 1


@dataclass
class ErasurePlan:
    """The plan of one erasure.

    Attributes:
        target: an id, a path, a digest; ``asked``: as it was named, maybe by a name.
        pks, entity_pks: keys of the memories and entities that go; ``derived_pks``: those of the
            memories that go because they were derived.
        strings: the strings to search for; ``least``: for a string that begins like one that
            stays, how many characters distinguish it; ``vectors``: parts of vectors, as hex.
        labels: strings that stand only beside the texts, in tags, attributes and other lines of
            the file, as titles do: they stay if a memory that stays has them beside its text.
        headings: those of files that have lines under them that stay.
        shared_strings: those that are not searched for, since memories that stay have them, too.
        spans: of a file, relative to the folder, the lines (first and last) that go.
        removals: files that go as a whole; ``snapshots``: those of bulletins, which go in any
            case.
        contents: digests of files of which something goes.
        entity_ids: of the entities that go.
        notes: reasons that were written about these memories only.
    """

    erasure_id: str
    kind: ErasureTargetKind
    target: str
    reason: str
    actor: str
    started_at: int
    pks: list[int] = field(default_factory=list)
    memory_ids: list[str] = field(default_factory=list)
    derived: int = 0
    derived_pks: list[int] = field(default_factory=list)
    entity_pks: list[int] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    least: dict[int, int] = field(default_factory=dict)
    vectors: list[str] = field(default_factory=list)
    too_short: int = 0
    shared: int = 0
    spans: dict[str, list[list[int]]] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    asked: str = ""
    entity_ids: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    shared_strings: list[str] = field(default_factory=list)

    @cached_property
    def needles(self) -> SearchTerms:
        return SearchTerms(
            self.strings, self.least, [bytes.fromhex(vector) for vector in self.vectors]
        )

    @cached_property
    def folded(self) -> SearchTerms:
        """The strings with every run of white space as one space; see ``policy.folding``."""
        least = {
            number: len(fold(self.strings[number][:many])) for number, many in self.least.items()
        }
        return SearchTerms([fold(string) for string in self.strings], least)

    @cached_property
    def cased(self) -> tuple[SearchTerms, SearchTerms]:
        """The long strings, folded: as they are, and casefolded."""
        merged = self.folded
        numbers = [number for number, value in enumerate(merged.strings) if is_long(value)]
        strings = [merged.strings[number] for number in numbers]
        least = {
            place: len(fold(self.strings[number][: self.least[number]]))
            for place, number in enumerate(numbers)
            if number in self.least
        }
        of_any_case = {
            place: len(strings[place][:many].casefold()) for place, many in least.items()
        }
        return SearchTerms(strings, least), SearchTerms(
            [string.casefold() for string in strings], of_any_case
        )

    @cached_property
    def kept_memories(self) -> tuple[NotErasedMemory, ...]:
        return tuple(NotErasedMemory.model_validate(item) for item in self.kept)

    def forget_needles(self) -> None:
        """Drop the cached search terms after the strings changed."""
        self.__dict__.pop("needles", None)
        self.__dict__.pop("folded", None)
        self.__dict__.pop("cased", None)
        self.__dict__.pop("kept_memories", None)

    def says(self, data: bytes) -> bool:
        """Return True when the data contains any of the strings."""
        return next(self.needles.hits(data), None) is not None

    def scrub(self, text: str) -> str:
        """Return the text without the strings."""
        return self.needles.scrub(text)


class PlanFile:
    """The plan of an erasure on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, paths: OrchestratorPaths, erasure_id: str) -> PlanFile:
        return cls(paths.erasing / f"{erasure_id}.json")

    def write(self, plan: ErasurePlan) -> None:
        """Write it durably and atomically, readable only by its owner."""
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = self.path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="ascii") as file:
            json.dump({"version": _VERSION, **_plain(plan)}, file)
        fsync(draft)
        draft.replace(self.path)
        fsync(self.path.parent)

    def read(self) -> ErasurePlan:
        """Return the plan. Raises StorageError: it is no plan of this version."""
        try:
            result: dict[str, Any] = json.loads(self.path.read_text(encoding="ascii"))
            version = result.pop("version")
            result["least"] = {int(key): value for key, value in result["least"].items()}
            plan = ErasurePlan(**{**result, "kind": ErasureTargetKind(result["kind"])})
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self.path} is not the plan of an erasure") from error
        if version != _VERSION:
            raise StorageError(
                f"{self.path} was made by another version of memgraph; continue with that one"
            )
        return plan

    def wipe(self) -> None:
        """Overwrite and remove it; a missing file is ignored."""
        for path in (self.path, self.path.with_suffix(".new")):
            wipe(path)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros and remove it; a missing file is ignored."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remaining = os.fstat(handle).st_size
        while remaining > 0:
            remaining -= os.write(handle, bytes(min(remaining, 1 << 20)))
        os.fsync(handle)
    finally:
        os.close(handle)
    path.unlink(missing_ok=True)


def unfinished(paths: OrchestratorPaths) -> Iterator[PlanFile]:
    """Yield the plans of unfinished erasures, oldest first; half-written ones are wiped."""
    if not paths.erasing.is_dir():
        return
    for path in sorted(paths.erasing.iterdir()):
        if path.suffix == ".new":
            wipe(path)
        elif path.suffix == ".json":
            yield PlanFile(path)


def _plain(plan: ErasurePlan) -> dict[str, Any]:
    names = {field.name for field in fields(plan)}
    return {name: value for name, value in asdict(plan).items() if name in names}


def note_left_on_server(paths: OrchestratorPaths, url: str, schema: str) -> None:
    """Note that a move has left a schema on a server; ``url`` is without a password."""
    places = left_on_servers(paths)
    paths.left_on_servers.parent.mkdir(parents=True, exist_ok=True)
    with draft_beside(paths.left_on_servers) as draft:
        draft.write_text(json.dumps([*places, f"{schema} on {url}"]), "utf-8")
        publish(draft, paths.left_on_servers, force=True)


def left_on_servers(paths: OrchestratorPaths) -> list[str]:
    """Return the noted schemas, as ``schema on address``, the oldest first."""
    try:
        places: list[str] = json.loads(paths.left_on_servers.read_text("utf-8"))
    except FileNotFoundError:
        return []
    return places
