"""What of a turn is an echo of the memory itself, and what remains of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.consolidation.turns import Turn
from memgraph.policy import echo
from memgraph.policy.echo import EchoReason
from memgraph.policy.sentences import split_sentences
from memgraph.storage import echo_lines
from memgraph.storage.database import Database


@dataclass(frozen=True, slots=True)
class Remainder:
    """What of a text is no echo; ``text`` is the given one where nothing was, and may be empty.

    ``reasons``: one for each sentence or block that was left out.
    """

    text: str
    reasons: tuple[EchoReason, ...] = ()


class EchoFilter:
    """Tells echoes among the turns of a page. Receipts must have been flushed before.

    Reads for all given turns at once; another text that is asked for costs a short read.
    """

    def __init__(self, database: Database, turns: Sequence[Turn] = ()) -> None:
        self._database = database
        self._lines: dict[int, tuple[int, int] | None] = {}
        with database.read() as connection:
            self._load_lines(connection, (turn.content for turn in turns))

    def is_echo(self, text: str, *, source_role: str | None, at_ms: int) -> EchoReason | None:
        """Why a text as a whole is no source; None: something in it is."""
        left = self.without_echo(text, source_role=source_role, at_ms=at_ms)
        return left.reasons[0] if left.reasons and not left.text else None

    def without_echo(self, text: str, *, source_role: str | None, at_ms: int) -> Remainder:
        """What remains of a text, judged line by line and sentence by sentence."""
        kept: list[str] = []
        reasons: list[EchoReason] = []
        for unit in echo.units(text):
            if reason := self._line(unit, source_role, at_ms):
                reasons.append(reason)
                continue
            said = []
            for sentence in split_sentences(unit):
                reason = self._line(sentence, source_role, at_ms)
                if reason is None:
                    said.append(sentence)
                else:
                    reasons.append(reason)
            kept.append(" ".join(said))
        if not reasons:
            return Remainder(text)
        return Remainder("\n".join(line for line in kept if line), tuple(reasons))

    def _line(self, text: str, source_role: str | None, at_ms: int) -> EchoReason | None:
        form = echo.normal_form(text)
        if not echo.says_enough(form):
            return None
        line_hash = echo.form_hash(form)
        if line_hash not in self._lines:
            with self._database.read() as connection:
                self._load_lines(connection, (text,))
        found = self._lines.get(line_hash)
        # A turn that was recalled later is not an echo of itself.
        if found is None or found[0] >= at_ms:
            return None
        recent = found[1] >= at_ms - echo.WINDOW_MS
        return EchoReason.LINE if recent or echo.is_agent(source_role) else None

    def _load_lines(self, connection: sa.Connection, texts: Iterable[str]) -> None:
        hashes = {each for text in texts for each in echo.line_hashes(text)} - self._lines.keys()
        if hashes:
            found = echo_lines.find(connection, hashes)
            self._lines |= {each: found.get(each) for each in hashes}
