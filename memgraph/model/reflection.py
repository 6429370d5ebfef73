"""What belongs before an answer, as it is handed out."""

from __future__ import annotations

from memgraph.model.recall import Bundle
from memgraph.model.values import Memory, Value


class Relevant(Value):
    """What is known of a message before it is answered.

    Attributes:
        bundle: the facts that fit it, best first, none of them from the conversation itself.
        reflection: the latest of the week's reflections that the reader may see; None: there is
            none.
    """

    bundle: Bundle
    reflection: Memory | None
