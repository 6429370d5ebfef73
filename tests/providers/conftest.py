"""The model server as a fixture, and a check that its key is in no error and in no output."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from model_server import KEY


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def assert_no_secret(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Callable[[BaseException], None]:
    """Fails when the key shows anywhere in an error, in what hangs on it, or in any output."""
    caplog.set_level("DEBUG", logger="memgraph")

    def check(error: BaseException) -> None:
        pending, seen = [error], []
        while pending:
            current = pending.pop()
            seen.append(current)
            texts = [str(current), repr(current), repr(vars(current))]
            assert not [text for text in texts if KEY in text]
            linked = (current.__cause__, current.__context__)
            pending += [e for e in linked if e is not None and e not in seen]
        assert error in seen
        out, err = capfd.readouterr()
        assert KEY not in out + err + caplog.text

    return check
