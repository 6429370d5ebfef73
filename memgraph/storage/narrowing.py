"""What a recall may find: the view of the reader and the filters of the request, as SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memgraph.model.enums import MemoryStatus
from memgraph.model.recall import RecallRequest
from memgraph.policy.reflection import WEEKLY
from memgraph.storage.visibility import View


@dataclass(frozen=True)
class Narrowing:
    """The view of the reader and the filters of the request, as one condition."""

    view: View
    request: RecallRequest
    at: int

    def where(self, alias: str) -> str:
        """The condition on a row of ``memories``; it binds ``params``."""
        seen = [self.view.where(alias), self.view.unerased(alias)]
        if self.request.valid_at is not None:
            return " AND ".join([*seen, self._held(alias), *self._filters(alias)])
        # What was replaced or retracted carries the time of that as its end; the view decides it.
        end = self.view.value("valid_until", alias)
        holds = f"({end} IS NULL OR {end} > :at OR {self.view.status(alias)} <> 'active')"
        return " AND ".join([*seen, holds, *self._filters(alias)])

    @cached_property
    def params(self) -> dict[str, Any]:
        """Named values for ``where``; a dozen statements of a recall share them."""
        request = self.request
        path = request.source_path or ""
        return self.view.params | {
            "at": self.at,
            "types": json.dumps(request.types),
            "kinds": json.dumps(request.kinds),
            "tags": json.dumps(request.tags),
            "source_types": json.dumps(request.source_types),
            "source_path": path,
            "source_path_end": path[:-1] + "0" if path.endswith("/") else None,
            "conversation_id": request.conversation_id,
            "session_id": request.session_id,
            "exclude_session_id": request.exclude_session_id,
            "valid_at": request.valid_at,
            "event_after": request.event_after,
            "event_before": request.event_before,
        }

    def with_statuses(self, statuses: frozenset[MemoryStatus] | None) -> Narrowing:
        """The same for memories of other statuses."""
        view = View(self.view.viewer, self.view.as_of, statuses)
        return Narrowing(view, self.request, self.at)

    def _held(self, alias: str) -> str:
        """Whether a memory was true at ``valid_at``, as far as the view knows."""
        end = self.view.value("valid_until", alias)
        lost = (
            "SELECT 1 FROM memory_edges l WHERE l.edge_type = 'Contradicts'"
            f" AND (l.from_memory_id = {alias}.memory_id OR l.to_memory_id = {alias}.memory_id)"
            f" AND json_extract({self.view.resolution('l')}, '$.loser_id') = {alias}.memory_id"
        )
        return (
            f"coalesce({alias}.event_time, {alias}.created_at) <= :valid_at"
            f" AND ({end} IS NULL OR {end} > :valid_at)"
            f" AND ({self.view.status(alias)} = 'active' OR NOT EXISTS ({lost}))"
        )

    def _filters(self, alias: str) -> Iterator[str]:
        request, tags = self.request, self.view.value("tags", alias)
        for column, wanted in (("type", request.types), ("kind", request.kinds)):
            if wanted:
                yield f"{alias}.{column} IN (SELECT value FROM json_each(:{column}s))"
        if not request.kinds and not request.tags:
            # It holds the words of a whole week and says nothing of its own: what it cites answers.
            yield f"({alias}.kind <> 'reflection' OR instr({tags}, '\"{WEEKLY}\"') = 0)"
        if request.tags:
            yield (
                "NOT EXISTS (SELECT 1 FROM json_each(:tags) t"
                f" WHERE t.value NOT IN (SELECT value FROM json_each({tags})))"
            )
        if request.session_id is not None:
            yield f"{alias}.session_id = :session_id"
        if request.exclude_session_id is not None:
            yield f"{alias}.session_id IS NOT :exclude_session_id"
        if request.event_after is not None:
            yield f"coalesce({alias}.event_time, {alias}.created_at) >= :event_after"
        if request.event_before is not None:
            yield f"coalesce({alias}.event_time, {alias}.created_at) < :event_before"
        source = list(self._source_filters())
        if source:
            yield (
                f"{alias}.source_id IN (SELECT s.source_id FROM memory_sources s"
                f" WHERE {' AND '.join(source)})"
            )

    def _source_filters(self) -> Iterator[str]:
        request = self.request
        if request.source_types:
            yield "s.source_type IN (SELECT value FROM json_each(:source_types))"
        if request.conversation_id is not None:
            yield "s.conversation_id = :conversation_id"
        if request.source_path is not None:
            if request.source_path.endswith("/"):
                # "0" is the character after "/": a range, so that no pattern needs escaping.
                yield "s.source_path >= :source_path AND s.source_path < :source_path_end"
            else:
                yield "s.source_path = :source_path"
