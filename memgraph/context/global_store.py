"""What holds in every project of an orchestrator: how a person wants things, what proved itself."""

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
    """Preferences and patterns; nothing of it is ever evicted.

    What is written here comes into every prompt. Adding or changing a preference and clearing all
    of it take a person's consent; adding a pattern and reading do not.

    Attributes:
        confirmation_callback: who is asked; without it what takes consent is refused.
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
        """Keep how a person wants things: in ``style``, ``verbosity``, ``tools`` …

        Args:
            require_confirmation: False is the word of whoever calls that the person was asked.

        Returns:
            The item; None: the person declined.

        Raises:
            InvalidInput: the text is empty or too long, or the category is no name.
            ConfirmationMissing: nobody said yes or no.
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
        """Replace what a preference says, whoever stored it; its id and all else of it stay.

        Returns, raises: as ``add_preference``.

        Raises:
            NotFound: there is no preference of that id.
            Conflict: somebody else changed it while the person was asked.
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
        """Keep what proved itself in a domain.

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
        """Preferences, of one category or all, newest first, 100 at most."""
        filters: dict[str, Any] = {"kind": "preference", "source": SOURCE}
        if category:
            filters["tags"] = [category]
        return self.backend.query(filters, limit=100)

    def clear_all(self) -> bool:
        """Give up everything that is global; False: the person declined.

        Raises:
            ConfirmationMissing: nobody said yes or no.
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
