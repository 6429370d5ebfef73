"""One spelling of JSON, whichever way it is made."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from memgraph.model.values import compact_json
from memgraph.store.rows import compact_array

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=()))
)


@given(st.lists(SCALARS | st.lists(SCALARS, max_size=2)))
def test_an_array_is_spelt_as_by_the_encoder(values: list[object]) -> None:
    assert compact_array(values) == compact_json(values)
    assert json.loads(compact_array(values)) == values
