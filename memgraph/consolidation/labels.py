"""Extract the sentences of a page that their writer has labelled: "TODO: …", "Decision: …".

Without a model nothing else is extracted: a turn stays a turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memgraph.consolidation.ports import FactCandidate, PageProposal, PageTurn, TurnPage
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.rules.workflow import labelled
from memgraph.text.sentences import split_sentences

CONFIDENCE: Final = 0.7
_BULLETS: Final = ("- ", "* ", "+ ", "• ")


class LabelExtractor:
    """Proposes the labelled sentences of a page, without their labels."""

    name = "labels"

    def propose(self, page: TurnPage) -> PageProposal:
        """See `Extractor.propose`; never fails."""
        facts = (fact for turn in page.turns for fact in _facts_of(turn))
        return PageProposal(facts=tuple(facts))


def _facts_of(turn: PageTurn) -> Iterator[FactCandidate]:
    if voice_of(turn.source_role, turn.told_as) is SpeakerRole.SILENT:
        return
    for line in turn.content.splitlines():
        item = line.lstrip()
        for sentence in split_sentences(item[2:] if item.startswith(_BULLETS) else item):
            found = labelled(sentence)
            if found is None:
                continue
            kind, text = found
            yield FactCandidate(
                content=text,
                type=kind,
                importance=DEFAULT_IMPORTANCE[kind],
                confidence=CONFIDENCE,
                event_time=None,
                evidence=(turn.memory_id,),
                quote=sentence,
                attributes={"speaker": turn.source_role},
            )
