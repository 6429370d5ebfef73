"""Only a clear yes is consent."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.context.assembly import confirmed
from memgraph.errors import AccessDenied, ConfirmationMissing


@pytest.mark.parametrize("answer", [None, 1, 0, "yes"])
def test_any_other_answer_is_nobodys(answer: Any) -> None:
    with pytest.raises(ConfirmationMissing) as raised:
        confirmed(lambda _: answer, "Sure?")
    assert isinstance(raised.value, AccessDenied)
    assert raised.value.details == {"given": type(answer).__name__}


def test_without_anybody_to_ask_it_is_refused() -> None:
    with pytest.raises(ConfirmationMissing):
        confirmed(None, "Sure?")


def test_a_callback_that_fails_consents_to_nothing_and_its_text_stays_out() -> None:
    def callback(question: str) -> bool:
        raise ConnectionError("token=abc")

    with pytest.raises(ConfirmationMissing) as raised:
        confirmed(callback, "Sure?")
    assert raised.value.details == {"error": "ConnectionError"}
    assert "token" not in str(raised.value.as_dict())
