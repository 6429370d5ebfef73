"""How two statements about one thing relate: the same, an update, or a contradiction."""

from memgraph.relations.compare import Finding, compare, search_words
from memgraph.relations.statement import Statement, quote

__all__ = ["Finding", "Statement", "compare", "quote", "search_words"]
