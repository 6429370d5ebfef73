"""Where a sentence ends, for those who see the service alone."""

from __future__ import annotations

from memgraph.policy.sentences import split_sentences

__all__ = ["split_sentences"]
