"""Prepare a request before a snapshot is opened: its reader, its words, its vector."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memgraph.errors import ProviderError
from memgraph.model.recall import Degraded, RecallRequest, ReplayMoment
from memgraph.retrieval import query
from memgraph.retrieval.legs import ACTIVE
from memgraph.rules.scope import Viewer, narrow
from memgraph.store.recall import RecallFilter
from memgraph.store.visibility import STANDING, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
NameKeys = Callable[[str], Collection[str]]

# What an embedding model is given of a query; the rest would hardly move its vector.
MAX_EMBEDDED_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request and all that needs no database; made while no transaction is open.

    Attributes:
        vector: shape (dimensions,), unit norm; None: there is none.
        name_keys: the canonical names in the query.
        degraded: what went wrong on the way.
    """

    request: RecallRequest
    question: query.ParsedQuery
    vector: NDArray[np.float32] | None
    name_keys: Collection[str]
    degraded: tuple[Degraded, ...]


def prepared(
    request: RecallRequest,
    now_ms: int,
    *,
    embed: Embed | None,
    name_keys: NameKeys | None,
) -> PreparedRequest:
    """Return what `recall` does before it opens a snapshot; ``embed``, ``name_keys``: as there.

    "Last week" is the one before ``now_ms``, or before the time that the request asks of.
    """
    degraded: list[Degraded] = []
    vector = _query_vector(request.query, embed, degraded)
    keys = name_keys(request.query[: query.MAX_NAMING_CHARS]) if name_keys else ()
    asked_ms = now_ms if request.as_of is None else request.as_of
    question = query.read(request.query, asked_ms)
    return PreparedRequest(request, question, vector, keys, tuple(degraded))


def narrowed(
    request: RecallRequest, viewer: Viewer, now_ms: int, then: ReplayMoment | None = None
) -> RecallFilter:
    """Return what a request may find, or, where it is asked once more as of ``then``, could find.

    Raises AccessDenied: it reaches further than ``viewer``.
    """
    replaced_too = request.include_superseded or request.valid_at is not None
    as_of = request.as_of if then is None else then.known
    view = View(_viewer(request, viewer), as_of, STANDING if replaced_too else ACTIVE)
    return RecallFilter(view, request, now_ms if request.as_of is None else request.as_of)


def _viewer(request: RecallRequest, granted: Viewer) -> Viewer:
    return narrow(
        granted,
        clearance=request.clearance,
        project_ids=request.project_ids,
        session_ids=request.session_scope_ids,
        scopes=request.scopes,
        agent_id=request.agent_id,
    )


def _query_vector(
    text: str, embed: Embed | None, degraded: list[Degraded]
) -> NDArray[np.float32] | None:
    """The query's vector; None when there is no model, it failed, or there is nothing to embed."""
    if embed is None or not text.strip():
        return None
    try:
        vector = embed([text[:MAX_EMBEDDED_CHARS]])[0]
    except ProviderError as error:
        degraded.append(
            Degraded(
                code="vector.provider_failed",
                text=f"the embedding model failed ({error.code}); the words alone were searched",
            )
        )
        return None
    return vector if vector.any() else None
