"""Rejection of parameters and fields that the OpenAPI document does not declare.

A misspelt parameter that was ignored would widen what its sender sees.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fastapi import Request

from memgraph.errors import InvalidInput

MOST_PROBLEMS: Final = 20
_NAME: Final = re.compile(r"^[A-Za-z0-9_-]{1,40}$")
_SCHEMAS: Final = "#/components/schemas/"

Json = Mapping[str, Any]


class FieldNames:
    """The names that each operation of a document takes.

    Args:
        load: returns the OpenAPI document, which takes half a second; called once, at first need.
            Concurrent callers wait for it.
    """

    def __init__(self, load: Callable[[], Json]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._loaded = False
        self._schemas: Json = {}
        self._queries: dict[tuple[str, str], dict[str, bool]] = {}
        self._bodies: dict[tuple[str, str], Json] = {}

    def read(self) -> None:
        """Read the document, if it was not read yet."""
        if self._loaded:
            return
        with self._loading:
            if not self._loaded:
                self._read(self._load())
                self._loaded = True

    def _read(self, document: Json) -> None:
        self._schemas = document["components"]["schemas"]
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                self._queries[path, method] = {
                    item["name"]: item["schema"].get("type") == "array"
                    for item in operation.get("parameters", ())
                    if item["in"] == "query"
                }
                content = operation.get("requestBody", {}).get("content", {})
                self._bodies[path, method] = content.get("application/json", {}).get("schema", {})

    def require_query(self, request: Request) -> None:
        """Raise InvalidInput when a parameter is unknown to the route, or repeated."""
        # It builds the models, too: no body is to be read before that.
        self.read()
        if not request.scope["query_string"]:
            return
        known = self._queries.get(_operation(request))
        if known is None:
            return
        given = request.query_params
        problems = [
            *(
                _problem(item, f"no such parameter; {_listed(known)}")
                for item in sorted(given.keys() - known.keys())
            ),
            *(
                _problem(item, "comes once")
                for item in sorted(given.keys() & known.keys())
                if not known[item] and len(given.getlist(item)) > 1
            ),
        ]
        if problems:
            raise invalid(problems[:MOST_PROBLEMS])

    def unknown_field(self, request: Request, where: Iterable[int | str]) -> str:
        """Return the message for a field of a body that its model does not have.

        Args:
            where: the steps from the body to what holds the field.
        """
        self.read()
        results = [self._bodies.get(_operation(request), {})]
        for step in where:
            results = [inner for item in results for inner in self._below(item, step)]
        names = {
            name
            for item in results
            for one in self._plain(item)
            for name in one.get("properties", ())
        }
        return f"no such field; {_listed(names)}" if names else "no such field"

    def _below(self, schema: Json, step: int | str) -> Iterator[Json]:
        """Yield the schemas that a step of a path may lead to; the name of a model leads to that
        model.
        """
        for item in self._plain(schema):
            if isinstance(step, int):
                yield from (item[name] for name in ("items",) if name in item)
            elif step in item.get("properties", ()):
                yield item["properties"][step]
            elif step == item.get("title"):
                yield item

    def _plain(self, schema: Json) -> Iterator[Json]:
        """Yield a schema without references, as one or several."""
        if "$ref" in schema:
            yield from self._plain(self._schemas[schema["$ref"].removeprefix(_SCHEMAS)])
        elif "anyOf" in schema:
            for item in schema["anyOf"]:
                yield from self._plain(item)
        else:
            yield schema


def invalid(problems: list[dict[str, str]]) -> InvalidInput:
    """Return the error for wrong fields, each as ``{"field": …, "problem": …}``."""
    message = "; ".join(f"{problem['field']}: {problem['problem']}" for problem in problems[:5])
    return InvalidInput(f"not a valid request: {message}", problems=problems)


def told(part: object) -> str:
    """Return a step to a wrong field for the message: a made-up name may be any text."""
    text = str(part)
    return text if _NAME.match(text) else "(unknown)"


def _problem(name: str, text: str) -> dict[str, str]:
    return {"field": f"query.{told(name)}", "problem": text}


def _listed(names: Iterable[str]) -> str:
    listed = ", ".join(sorted(names))
    return f"known: {listed}" if listed else "there is none"


def _operation(request: Request) -> tuple[str, str]:
    path = getattr(request.scope.get("route"), "path_format", "")
    method = request.method.lower()
    return path, "get" if method == "head" else method
