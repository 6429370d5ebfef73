"""Bodies of requests that the models of the library do not describe by themselves."""

from __future__ import annotations

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from memgraph.model.values import Value


class ItemOf:
    """An object that is documented as a value, and passed unchanged for the library to validate.

    In a batch an invalid item is rejected by itself, and the others are processed.
    """

    def __init__(self, kind: type[Value]) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        self._kind.model_rebuild()
        return handler(self._kind.__pydantic_core_schema__)
