"""A person's consent to changes that affect every project and every agent."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.errors import ConfirmationMissing

ConfirmationCallback = Callable[[str], bool]
"""Asks a person a question and returns True for yes and False for no; it may take time."""


def confirmed(callback: ConfirmationCallback | None, question: str) -> bool:
    """Ask the person; return True for yes.

    Only True is consent and only False is a refusal: any other answer, such as the None of a
    callback that forgot to return one, is an error.

    Raises:
        ConfirmationMissing: nobody can be asked, the callback failed, or its answer is neither.
    """
    if callback is None:
        raise ConfirmationMissing("it takes a person's consent: give a confirmation_callback")
    try:
        answer = callback(question)
    except Exception as error:
        raise ConfirmationMissing(
            "nobody could be asked: the confirmation_callback failed", error=type(error).__name__
        ) from error
    if answer is not True and answer is not False:
        raise ConfirmationMissing(
            "no consent was given: a confirmation_callback gives True or False",
            given=type(answer).__name__,
        )
    return answer
