"""The embedding port: what every embedding model must do, and the factory that picks one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Unpack, runtime_checkable

from memgraph.errors import (
    InvalidConfig,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderUnavailable,
)
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

DEFAULTS: Final[ModelOptions] = {"timeout_s": 20.0, "retries": 2}
DEFAULT_BATCH_SIZE: Final = 64
MAX_CHARACTERS: Final = 8_192
"""Characters beyond this number do not enter a text's vector."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""A larger answer to one request is refused."""


@runtime_checkable
class EmbeddingProvider(Protocol):
    """Turns texts into vectors of one fixed dimension. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``local``, ``onnx``, ``litellm/<model>`` or ``fake``."""
        ...

    @property
    def model(self) -> str:
        """Identity stored beside every vector; vectors of two identities are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector, at least 1."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed ``texts`` in their order.

        Returns:
            An array of shape ``(len(texts), dimensions)``. Rows have norm 1; a row is all zeros
            only where its text holds nothing to embed (empty, blank, or no known token).
            Only the first `MAX_CHARACTERS` of a text count.

        Raises:
            ProviderUnavailable: worth trying again later (timeout, connection, 429, 5xx).
            ProviderRejected: not worth trying again unchanged (key, model, request, damaged files).
            ProviderAnswerInvalid: wrong count or dimension, NaN, infinity, a zero vector.
        """
        ...


def checked(
    vectors: ArrayLike, count: int, dimensions: int, *, zero_rows: bool = False
) -> NDArray[np.float32]:
    """Validate a model's answer and scale every row to norm 1.

    Args:
        vectors: what the model returned, anything numpy can turn into a 2-d array of numbers.
        count: how many rows were asked for.
        dimensions: the length every row must have.
        zero_rows: whether all-zero rows are allowed; they stay zero.

    Raises:
        ProviderAnswerInvalid: with ``details['reason']`` one of ``shape``, ``count``,
            ``dimensions``, ``not_finite`` or ``zero``.
    """
    import numpy as np

    array = None
    # numpy's own error quotes the answer: it is dropped here, not chained.
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        # float64 first: a finite double may overflow float32, and squares must not.
        array = np.asarray(vectors, dtype=np.float64)
    if array is not None and count == 0 and array.size == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    if array is not None and array.ndim > 0 and len(array) != count:
        raise _invalid(f"{len(array)} vectors for {count} texts", "count")
    if array is None or array.ndim != 2:
        raise _invalid("vectors that are no table of numbers", "shape")
    if array.shape[1] != dimensions:
        size = array.shape[1]
        raise _invalid(f"{size} dimensions where {dimensions} are configured", "dimensions")
    if not np.isfinite(array).all():
        raise _invalid("a vector with NaN or infinity", "not_finite")
    largest = np.abs(array).max(axis=1, keepdims=True)
    if not zero_rows and (largest == 0.0).any():
        raise _invalid("a vector of zeros", "zero")
    # Dividing by the largest entry first keeps the squares of huge and tiny vectors in range.
    array = array / np.where(largest == 0.0, 1.0, largest)
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    return (array / np.where(norms == 0.0, 1.0, norms)).astype(np.float32)


class CheckedEmbedding:
    """A provider from outside this package, every answer checked and every error typed.

    Args:
        provider: an object with the members of ``EmbeddingProvider``.

    Raises:
        InvalidConfig: ``model`` is no text, or ``dimensions`` no number of at least 1.
    """

    def __init__(self, provider: EmbeddingProvider) -> None:
        self._provider = provider
        self.name, self.model, self.dimensions = provider.name, provider.model, provider.dimensions
        if not isinstance(self.model, str) or not self.model:
            raise InvalidConfig("An embedding provider names its model.", key="model")
        if not isinstance(self.dimensions, int) or self.dimensions < 1:
            raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit rows; a row of zeros stays one.

        Raises:
            ProviderError: what the provider raised; ``ProviderUnavailable`` names the class of any
                other exception, never its text, which may hold a key or what was embedded.
            ProviderAnswerInvalid: see ``checked``, or the answer is larger than
                ``MAX_ANSWER_BYTES``.
        """
        try:
            answer = self._provider.embed(texts)
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001 - a foreign object raises whatever it likes
            raise ProviderUnavailable(
                f"The embedding provider failed with {type(error).__name__}."
            ) from None
        if getattr(answer, "nbytes", 0) > MAX_ANSWER_BYTES:
            raise _invalid("more than 64 MB", "size")
        return checked(answer, len(texts), self.dimensions, zero_rows=True)


def prepared(text: str) -> str:
    """Return the part of ``text`` that is embedded: capped, lone surrogates (not UTF-8)
    replaced.
    """
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _invalid(what: str, reason: str) -> ProviderAnswerInvalid:
    return ProviderAnswerInvalid(f"The embedding model returned {what}.", reason=reason)


def embedding_provider(
    name: str,
    *,
    dimensions: int | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
    model_folder: str = "",
    model: str = "",
    **options: Unpack[ModelOptions],
) -> EmbeddingProvider:
    """Return the provider with this configured name. Loads no model and opens no connection.

    Args:
        name: ``local``, ``onnx``, ``fake`` or ``litellm/<model>``, the model as litellm names it.
        dimensions: needed for ``litellm/…`` and ``onnx``; ``local`` has 256 and takes no other;
            ``fake`` takes any, 64 by default.
        batch_size: texts in one request, >= 1; for ``litellm/…`` and ``onnx``.
        model_folder: for ``onnx``: the folder of the model, an absolute path.
        model: for ``onnx``: a name that fastembed knows; ``model_folder`` is then its cache, or
            empty.
        options: for ``litellm/…``; see ``ModelOptions``.

    Raises:
        InvalidConfig: an unknown name or a value out of range; ``details['key']`` names it.
    """
    if dimensions is not None and dimensions < 1:
        raise InvalidConfig("Embedding dimensions must be at least 1.", key="dimensions")
    if name == "local":
        from memgraph.providers.local import LocalEmbedding

        if dimensions not in (None, LocalEmbedding.dimensions):
            raise InvalidConfig(
                f"The local embedding model has {LocalEmbedding.dimensions} dimensions.",
                key="dimensions",
            )
        return LocalEmbedding()
    if name == "fake":
        from memgraph.providers.fake import FakeEmbedding

        return FakeEmbedding() if dimensions is None else FakeEmbedding(dimensions=dimensions)
    if name == "onnx":
        from memgraph.providers.onnx_embedding import OnnxEmbedding

        if dimensions is None:
            raise InvalidConfig("'onnx' needs its dimensions configured.", key="dimensions")
        folder = Path(model_folder) if model_folder else None
        return OnnxEmbedding(folder, dimensions=dimensions, batch_size=batch_size, named=model)
    if name.startswith(LITELLM_PREFIX) and len(name) > len(LITELLM_PREFIX):
        from memgraph.providers.litellm_embedding import LitellmEmbedding

        if dimensions is None:
            raise InvalidConfig(f"{name!r} needs its dimensions configured.", key="dimensions")
        return LitellmEmbedding(
            name.removeprefix(LITELLM_PREFIX),
            dimensions=dimensions,
            batch_size=batch_size,
            **options,
        )
    raise InvalidConfig(
        f"Unknown embedding provider {name!r}: use local, onnx, fake or litellm/<model>.",
        key="name",
    )
