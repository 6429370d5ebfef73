"""The store of the global tier: a person's preferences, and proven patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.clock import Clock
from memgraph.context.confirming import ConfirmationCallback, confirmed
from memgraph.context.items import text_key
from memgraph.context.stores import Store
from memgraph.errors import Conflict, NotFound
from memgraph.ids import IdSource
from memgraph.model.context import ContextItem

if TYPE_CHECKING:
    from memgraph.context.backend import MemoryBackend

SOURCE = "global"


class GlobalMemoryStore(Store):
    """Preferences and patterns; they are never evicted.

    They come into every prompt. Adding or changing a preference and clearing the store require a
    person's consent; adding a pattern and reading do not.

    Attributes:
        confirmation_callback: asks for consent; without it such changes are refused.
    """

    def __init__(
        self,
        backend: MemoryBackend,
        confirmation_callback: ConfirmationCallback | None = None,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        super().__init__(backend, clock=clock, ids=ids)
        self.confirmation_callback = confirmation_callback

    def add_preference(
        self, preference: str, category: str, require_confirmation: bool = True
    ) -> ContextItem | None:
        """Store a person's preference about ``style``, ``verbosity``, ``tools`` …

        Args:
            require_confirmation: False: the caller vouches that the person was asked.

        Returns:
            The item; None: the person declined.

        Raises:
            InvalidInput: the text is empty or too long, or the category is no name.
            ConfirmationMissing: the callback gave no answer.
        """
        item = self._new(
            "pref",
            preference,
            kind="preference",
            group=category,
            importance=0.9,
            payload={"preference": preference, "category": category},
        )
        question = f"Add global preference: {preference!r} (category: {category})?"
        if require_confirmation and not self._consent(question):
            return None
        self.backend.add(item)
        return item

    def change_preference(
        self, context_item_id: str, preference: str, require_confirmation: bool = True
    ) -> ContextItem | None:
        """Replace a preference's text, whoever stored it; its id and other fields stay.

        Returns, raises: as ``add_preference``.

        Raises:
            NotFound: there is no preference with that id.
            Conflict: it was changed while the person was asked.
        """
        old = self.backend.get(context_item_id)
        if old is None or old.kind != "preference":
            raise NotFound(f"no preference {context_item_id[:80]!r}")
        # One that was promoted or remembered keeps its text elsewhere than one that was added.
        key = text_key(old.payload) or "preference"
        fresh = self._item(
            "pref",
            self._statement(preference),
            kind=old.kind,
            source=old.source,
            tags=old.tags,
            importance=old.importance,
            payload={**old.payload, key: preference},
        )
        item = fresh.model_copy(update={"context_item_id": context_item_id})
        question = (
            f"Change global preference: {old.payload.get(key)!r} to {preference!r}"
            f" (category: {old.payload.get('category')})?"
        )
        if require_confirmation and not self._consent(question):
            return None
        if self.backend.get(context_item_id) != old:
            raise Conflict("it was changed meanwhile", context_item_id=context_item_id)
        self.backend.add(item)
        return item

    def add_pattern(self, pattern: str, domain: str) -> ContextItem:
        """Store a pattern that proved itself in a domain.

        Raises:
            InvalidInput: the text is empty or too long, or the domain is no name.
        """
        item = self._new(
            "pattern",
            pattern,
            kind="pattern",
            group=domain,
            importance=0.7,
            payload={"pattern": pattern, "domain": domain},
        )
        self.backend.add(item)
        return item

    def query_preferences(self, category: str | None = None) -> list[ContextItem]:
        """Return preferences, of one category or all, newest first, 100 at most."""
        filters: dict[str, Any] = {"kind": "preference", "source": SOURCE}
        if category:
            filters["tags"] = [category]
        return self.backend.query(filters, limit=100)

    def clear_all(self) -> bool:
        """Remove everything that is global; False: the person declined.

        Raises:
            ConfirmationMissing: the callback gave no answer.
        """
        if not self._consent("DANGER: Clear ALL global memory? This cannot be undone."):
            return False
        self.backend.clear()
        return True

    def _consent(self, question: str) -> bool:
        return confirmed(self.confirmation_callback, question)

    def _new(self, prefix: str, text: str, *, kind: str, group: str, **fields: Any) -> ContextItem:
        tags = ["global", kind, group]
        said = self._statement(text)
        return self._item(prefix, said, kind=kind, source=SOURCE, tags=tags, **fields)
