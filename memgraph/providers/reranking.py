"""The reranking port: a model that orders texts by how well they answer a question. Off by default.

A reranker only says in which order it would read what it is given; what becomes of that order, and
that nothing is lost by it, is the business of recall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, Unpack, runtime_checkable

from memgraph.errors import ProviderAnswerInvalid
from memgraph.providers.options import ModelOptions, litellm_model

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS: Final[ModelOptions] = {"timeout_s": 5.0, "retries": 1}
MAX_ANSWER_PLACES: Final = 100_000
"""An answer that names more is not looked at."""

Mode = Literal["rerank", "chat"]


@runtime_checkable
class RerankingProvider(Protocol):
    """Orders texts by a question. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``litellm/<model>`` or ``fake``."""
        ...

    def rank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        """Return the places of ``texts``, counted from 0, best first; a model may leave some out.

        Returns within the time that the provider was given, or raises.

        Raises:
            ProviderUnavailable: worth trying again later; ``details['reason']`` is ``timeout``
                when the time was over, ``busy`` when too many calls hang already.
            ProviderRejected: not worth trying again unchanged (key, model, request).
            ProviderAnswerInvalid: the answer is no order of these texts.
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
        name: ``litellm/<model>``, the model as litellm names it.
        mode: ``rerank`` for a model with a rerank interface, ``chat`` for a language model.
        options: see ``ModelOptions``; ``timeout_s`` is for one order, retries and pauses included.

    Raises:
        InvalidConfig: an unknown name or a value out of range; ``details['key']`` names it.
    """
    litellm_name = litellm_model(name, "reranking provider")
    from memgraph.providers.litellm_reranking import LitellmChatReranking, LitellmReranking

    chosen = LitellmChatReranking if mode == "chat" else LitellmReranking
    return chosen(litellm_name, **options)


def usable_places(answer: object, count: int) -> tuple[int, ...]:
    """Return the places below ``count`` that an answer names, each where it comes first.

    What is named twice or is out of range is passed over: a model that miscounts may still have
    an order to tell.

    Raises:
        ProviderAnswerInvalid: no list of whole numbers, or one without a usable place;
            ``details['reason']`` is ``shape`` or ``no_place``.
    """
    if not isinstance(answer, (list, tuple)) or len(answer) > MAX_ANSWER_PLACES:
        raise ProviderAnswerInvalid("The reranker returned no list of places.", reason="shape")
    if not all(type(place) is int for place in answer):
        raise ProviderAnswerInvalid("The reranker returned what is no place.", reason="shape")
    places = tuple(dict.fromkeys(place for place in answer if 0 <= place < count))
    if not places and count:
        raise ProviderAnswerInvalid("The reranker named none of the texts.", reason="no_place")
    return places
