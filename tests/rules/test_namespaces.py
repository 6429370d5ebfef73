"""Names and texts of items: whatever goes in comes out, and no namespace runs into another."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.model.values import MAX_CONTENT_CHARS, MAX_NAME_CHARS
from memgraph.rules import namespaces
from memgraph.rules.namespaces import MAX_DEPTH, MAX_LABELS

labels = st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1)
paths = st.lists(labels | st.sampled_from(["a", "ab", "a-", "a/", "a!"]), max_size=4).map(tuple)
keys = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["..", ".", "a..b"])
values = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
        | st.text(' \n\r\t\\"nu\0\u2028é\u0301', max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\n"), inner),
        max_leaves=8,
    ),
    max_size=4,
)


@given(paths, keys)
def test_an_id_gives_its_namespace_and_key_back(path: tuple[str, ...], key: str) -> None:
    assert namespaces.parse_item_id(namespaces.item_id(path, key)) == (path, key)


@given(paths, paths, keys)
def test_a_range_holds_what_is_below_a_prefix_and_nothing_else(
    prefix: tuple[str, ...], path: tuple[str, ...], key: str
) -> None:
    first, last = namespaces.within(prefix)
    below = path[: len(prefix)] == prefix
    assert (first <= namespaces.item_id(path, key) < last) is below


@given(paths, paths, keys)
def test_what_follows_a_namespace_leaves_out_just_its_own_items(
    one: tuple[str, ...], other: tuple[str, ...], key: str
) -> None:
    end = namespaces.after(one)
    found = namespaces.item_id(other, key)
    if one == other:
        assert found < end
    else:
        # Nothing else lies between the first item of a namespace and its end.
        assert not namespaces.item_id(one, "") <= found < end


@given(values)
def test_a_value_comes_back_as_it_was(value: dict[str, Any]) -> None:
    for text in (namespaces.value_text(value), namespaces.plain_text(value)):
        found = namespaces.value_of(text)
        assert found == value
        assert repr(found) == repr(value)


def test_the_first_word_of_a_line_is_a_word() -> None:
    assert '"one\ntwo\tthree\\\\n"' in namespaces.value_text({"x": "one\ntwo\tthree\\n"})


@pytest.mark.parametrize(
    "value",
    [
        {"x": math.nan},
        {"x": math.inf},
        {1: "x"},
        {"x": {2: "y"}},
        {"x": b"bytes"},
        {"x": {"set"}},
        {"x": "\ud800"},
        {"\ud800": "x"},
        {"x": 10**5000},
        ["no object"],
    ],
    ids=[
        "nan",
        "infinite",
        "number as key",
        "number as key inside",
        "bytes",
        "set",
        "surrogate",
        "surrogate in key",
        "endless number",
        "list",
    ],
)
def test_what_json_would_change_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        namespaces.value_text(value)


def test_values_have_bounds_and_reach_them() -> None:
    deepest: dict[str, Any] = {}
    for _ in range(MAX_DEPTH - 1):
        deepest = {"x": deepest}
    assert namespaces.value_of(namespaces.value_text(deepest)) == deepest
    with pytest.raises(InvalidInput, match="deeper"):
        namespaces.value_text({"x": deepest})
    room = MAX_CONTENT_CHARS - len('{"x": ""}')
    assert len(namespaces.value_text({"x": "y" * room})) == MAX_CONTENT_CHARS
    with pytest.raises(InvalidInput, match="characters"):
        namespaces.value_text({"x": "y" * (room + 1)})


def test_names_have_bounds_and_reach_them() -> None:
    room = MAX_NAME_CHARS - len(namespaces.item_id(("a",), ""))
    assert len(namespaces.item_id(("a",), "k" * room)) == MAX_NAME_CHARS
    with pytest.raises(InvalidInput, match="together"):
        namespaces.item_id(("a",), "k" * (room + 1))
    assert len(namespaces.checked(("a",) * MAX_LABELS)) == MAX_LABELS
    for wrong in (("a",) * (MAX_LABELS + 1), ("",), ("a.b",), (1,)):
        with pytest.raises(InvalidInput):
            namespaces.checked(wrong)  # type: ignore[arg-type]  # a number is no label


def test_an_item_that_is_not_searched_has_the_tag_of_an_item_alone() -> None:
    assert namespaces.tags_of(("a", "b"), searched=False) == (namespaces.ITEM_TAG,)
    name = namespaces.item_id(("a", "b"), "k")
    assert namespaces.is_item(name, namespaces.tags_of(("a", "b"), searched=False))
    assert not namespaces.is_item(name, ("store/a",))
    assert not namespaces.is_item(None, (namespaces.ITEM_TAG,))
    assert not namespaces.is_item("a/store/", (namespaces.ITEM_TAG,))
    searched = namespaces.tags_of(("a", "b"), searched=True)
    assert searched == (namespaces.ITEM_TAG, "store/", "store/a", "store/a.b")
