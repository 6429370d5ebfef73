"""The interface of rerankers: models that order texts by how well they answer a question.

Reranking is off by default. A reranker only returns an order; recall decides how to use it, and
makes sure that no memory is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, Unpack, runtime_checkable

from memgraph.errors import ProviderAnswerInvalid
from memgraph.providers.options import ModelOptions, litellm_model

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS: Final[ModelOptions] = {"timeout_s": 5.0, "retries": 1}
MAX_ANSWER_PLACES: Final = 100_000
"""The maximum length of an answer; a longer one is invalid."""

Mode = Literal["rerank", "chat"]


@runtime_checkable
class RerankingProvider(Protocol):
    """Orders texts by relevance to a question. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``litellm/<model>`` or ``fake``."""
        ...

    def rank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the places of ``texts``, from 0, best first; a model may leave some out.

        It returns or raises within the provider's time limit.

        Raises:
            ProviderUnavailable: temporary; a retry may succeed. ``details['reason']`` is
                ``timeout`` after the time limit, ``busy`` if too many calls are running.
            ProviderRejected: permanent; a retry will fail (key, model, request).
            ProviderAnswerInvalid: the answer is not an order of these texts.
        """
        ...


def reranking_provider(
    name: str,
    *,
    mode: Mode = "rerank",
    **options: Unpack[ModelOptions],
) -> RerankingProvider:
    """Return the provider with this configured name. Loads no model and opens no connection.

    Args:
        name: ``litellm/<model>``, with litellm's name of the model.
        mode: ``rerank`` for a model with a rerank API, ``chat`` for a language model.
        options: see ``ModelOptions``; ``timeout_s`` limits one call of ``rank``, including retries
            and pauses.

    Raises:
        InvalidConfig: the name is unknown or a value is out of range; ``details['key']`` names it.
    """
    litellm_name = litellm_model(name, "reranking provider")
    from memgraph.providers.litellm_reranking import LitellmChatReranking, LitellmReranking

    chosen = LitellmChatReranking if mode == "chat" else LitellmReranking
    return chosen(litellm_name, **options)


def usable_places(answer: object, count: int) -> tuple[int, ...]:
    """Return the valid places of an answer, those in 0..count-1, each once, in order.

    Repeated or invalid places are skipped: the answer of a model that miscounts may still be
    useful.

    Raises:
        ProviderAnswerInvalid: the answer is not a list of whole numbers, or has no valid place;
            ``details['reason']`` is ``shape`` or ``no_place``.
    """
    if not isinstance(answer, (list, tuple)) or len(answer) > MAX_ANSWER_PLACES:
        raise ProviderAnswerInvalid("The reranker did not return a list.", reason="shape")
    if not all(type(place) is int for place in answer):
        raise ProviderAnswerInvalid(
            "The reranker's list contains something other than integers.", reason="shape"
        )
    places = tuple(dict.fromkeys(place for place in answer if 0 <= place < count))
    if not places and count:
        raise ProviderAnswerInvalid("The reranker ranked none of the texts.", reason="no_place")
    return places
