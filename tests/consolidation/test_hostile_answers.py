"""Whatever JSON a model answers, its readers return something or call the answer invalid."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from sampling import often

from memgraph.consolidation import page_model, reflection_model, relations, statements as checks
from memgraph.consolidation.page_model import AnswerReader, PagePrompt, operations_of
from memgraph.consolidation.ports import KnownMemory, PageTurn
from memgraph.consolidation.statements import CitingStatement, EvidenceLine, check_statements
from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import MemoryType
from memgraph.operations.context import answer as asked
from memgraph.operations.life import summaries
from memgraph.providers.entity_names import ANSWER_SCHEMA, judge
from memgraph.providers.fake import FakeCompletion
from memgraph.rules.citations import cited_sentences

TURNS = [PageTurn("ep_1", "I moved to Oslo.", "Bruno", 0), PageTurn("ep_2", "Brr!", "Ana", 0)]
KNOWN = [KnownMemory("fact_1", "Bruno lives in Rome.", MemoryType.FACT, 50, "Bruno", 0, None)]
FIELDS = (
    *("text", "type", "turns", "quote", "happened", "entities", "importance", "known", "name"),
    *("same_as", "statement", "says", "differs", "lines", "memories"),
)
LISTS = ("add", "change", "end", "same", "entities", "verdicts", "sentences")
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["k1", "Fact", "person", "yes", "I moved to Oslo", "2024-13", "\ud83d"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=len(FIELDS))
    ),
    max_leaves=12,
)
answers = values | st.dictionaries(st.sampled_from(LISTS), values | st.lists(values, max_size=4))


@settings(max_examples=often(200))
@given(answers)
def test_any_answer_is_read_within_its_bounds_or_invalid(answer: Any) -> None:
    with suppress(ProviderAnswerInvalid):
        claims, _ = AnswerReader(PagePrompt(TURNS, (), KNOWN), "m", 12).read(operations_of(answer))
        assert len(claims) <= 64
    # Statements without a verdict are not said.
    statement = CitingStatement("He left.", (EvidenceLine("Ana", "2024-05-01", "Brr!"),), (0,))
    with suppress(ProviderAnswerInvalid):
        assert len(check_statements(FakeCompletion([answer, answer]), [statement])) == 1
    # Names are those of the text.
    text = "Bruno moved to Oslo."
    with suppress(ProviderAnswerInvalid):
        [found] = judge(answer, [text])
        assert all(text[span.start : span.end] == span.text for span in found.spans)
    # Citations are lines that were shown.
    with suppress(ProviderAnswerInvalid):
        sentences, _ = cited_sentences(answer, range(1, 4))
        assert all(set(sentence.numbers) <= {1, 2, 3} for sentence in sentences)


@pytest.mark.parametrize(
    "schema",
    [
        page_model.SCHEMA,
        checks.SCHEMA,
        relations.SCHEMA,
        reflection_model.SCHEMA,
        summaries.SCHEMA,
        asked.SCHEMA,
        ANSWER_SCHEMA,
    ],
)
def test_a_schema_has_no_limits_of_which_llama_cpp_makes_no_grammar(schema: dict[str, Any]) -> None:
    limits = re.findall(r'"max(?:Items|Length)": (\d+)', json.dumps(schema))
    assert all(int(limit) <= 8 for limit in limits)
