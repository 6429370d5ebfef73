"""Fake models for tests; part of the public interface. They load and learn nothing."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from memgraph.errors import InvalidConfig, MemgraphError, ProviderUnavailable
from memgraph.providers.embedding import checked, prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


class FakeEmbedding:
    """A fake embedding that hashes every word to a direction and sums the directions.

    Texts are the more similar the more words they share, so ranking by similarity makes sense.

    Args:
        dimensions: the length of the vectors, >= 1.
        fail_with: an error that every ``embed`` raises, for instance
            ``ProviderUnavailable("down")``; set the attribute to None to recover.

    Attributes:
        calls: the number of texts in each call of ``embed``, oldest first, including failed calls.

    Raises:
        InvalidConfig: ``dimensions`` is below 1.
    """

    name: ClassVar[str] = "fake"

    def __init__(self, dimensions: int = 64, fail_with: MemgraphError | None = None) -> None:
        if dimensions < 1:
            raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")
        self.dimensions = dimensions
        self.model = f"fake-{dimensions}@1"
        self.fail_with = fail_with
        self.calls: list[int] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `EmbeddingProvider.embed`. A text without words gives a row of zeros."""
        import numpy as np

        self.calls.append(len(texts))
        if self.fail_with is not None:
            raise self.fail_with
        out = np.zeros((len(texts), self.dimensions), dtype=np.float64)
        for row, text in zip(out, texts, strict=True):
            for word in _WORD.findall(prepared(text).casefold()):
                row += _direction(word, self.dimensions)
        return checked(out, len(texts), self.dimensions, zero_rows=True)


class FakeCompletion:
    """A fake model that returns prepared answers in order, or raises those that are errors.

    Whether evidence says a statement (``memgraph.consolidation.statements``) is answered apart.

    Args:
        answers: JSON values or errors, one for each call; further calls raise ProviderUnavailable.
        says: the verdict on every statement: ``yes``, ``partly`` or ``no``.

    Attributes:
        calls: the ``(system, user)`` of every call, oldest first, except for checks.
        checks: the ``user`` of every check.
    """

    name: ClassVar[str] = "fake"

    def __init__(self, answers: Iterable[Any | MemgraphError] = (), says: str = "yes") -> None:
        self._answers = list(answers)
        self.says = says
        self.calls: list[tuple[str, str]] = []
        self.checks: list[str] = []

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`."""
        if _is_check(schema):
            self.checks.append(user)
            numbers = map(int, _STATEMENT.findall(user))
            verdicts = [{"statement": each, "differs": "", "says": self.says} for each in numbers]
            return {"verdicts": verdicts}
        place = len(self.calls)
        self.calls.append((system, user))
        if place >= len(self._answers):
            raise ProviderUnavailable("The fake model has no more answers.")
        answer = self._answers[place]
        if isinstance(answer, MemgraphError):
            raise answer
        return copy.deepcopy(answer)


_STATEMENT = re.compile(r"^statement (\d+) ", re.MULTILINE)


def _is_check(schema: Mapping[str, Any]) -> bool:
    items = schema.get("properties", {}).get("verdicts", {}).get("items", {})
    return "says" in items.get("properties", {})


def _direction(word: str, dimensions: int) -> NDArray[np.float64]:
    """Return a pseudo-random vector with entries in [-1, 1) that depends only on the word."""
    import numpy as np

    digest = hashlib.shake_128(word.encode()).digest(4 * dimensions)
    return np.frombuffer(digest, dtype="<u4").astype(np.float64) / 2**31 - 1.0
