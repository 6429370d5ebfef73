"""Derive routes from the operations that a handle declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Annotated, Any, get_origin

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from pydantic import TypeAdapter, create_model

from memgraph.model.operation import Operation, Parameter, operations_of
from memgraph.model.values import Value
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import entering, slow_request, undivided, untimed
from memgraph.surfaces.http.envelope import JSON, answered

ROOT = "/v1/orchestrators/{orchestrator}"


def router_of(kind: type) -> APIRouter:
    """Return a router with a route for every served operation of a class and its groups.

    Raises:
        TypeError: two operations have one route.
    """
    router = APIRouter()
    routes: dict[str, str] = {}
    for declared in operations_of(kind).values():
        if not declared.served:
            continue
        if declared.route in routes:
            raise TypeError(f"{declared.id} has the route of {routes[declared.route]}")
        routes[declared.route] = declared.id
        router.add_api_route(
            ROOT + declared.path,
            _endpoint(declared),
            methods=[declared.method],
            operation_id=declared.id,
            summary=declared.id.replace("_", " ").title(),
            tags=[declared.tag],
            description=declared.summary,
            response_model=declared.sent,
            status_code=204 if declared.sent is None else declared.status,
            dependencies=[Depends(untimed)] if declared.slow else [],
        )
    return router


def _endpoint(declared: Operation) -> Callable[..., Response]:
    """Return the endpoint of an operation, with the signature that FastAPI needs."""
    body = _body(declared)
    names = {parameter.sent: name for name, parameter in declared.parameters.items()}
    adapter = _adapter(declared)
    dependency: Callable[..., Any] = entering(declared.permission)
    if declared.whole is not None:
        dependency = undivided(declared.whole, field=declared.id)

    def endpoint(request: Request, orc: Orchestrator, **arguments_sent: Any) -> Response:
        arguments = _arguments(declared, names, arguments_sent.pop("body", None))
        arguments |= {names[name]: value for name, value in arguments_sent.items()}
        in_time = slow_request(request) if declared.slow else nullcontext()
        with in_time, declared.naming(sent=True):
            result = declared.method_of(orc)(**arguments)
            if declared.wire is not None:
                result = declared.wire.of(result, limit=arguments.get("limit"))
            elif result is None:
                return Response(status_code=204)
            if adapter is None:
                return answered(result, status=declared.status)
            return Response(adapter.dump_json(result), media_type=JSON)

    endpoint.__name__ = declared.id
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            _parameter("request", Request),
            _parameter("orc", Annotated[Orchestrator, Depends(dependency)]),
            *_sent_parameters(declared, body),
        ],
        return_annotation=Response,
    )
    return endpoint


def _arguments(declared: Operation, names: Mapping[str, str], body: Value | None) -> dict[str, Any]:
    """Return the arguments that a body has; fields that were not sent are omitted."""
    if body is None:
        return {}
    if declared.whole_body is not None:
        return {declared.whole_body: body}
    return {names.get(name, name): getattr(body, name) for name in body.model_fields_set}


def _sent_parameters(declared: Operation, body: type[Value] | None) -> list[inspect.Parameter]:
    parameters = [
        _parameter(item.sent, Annotated[item.type, Path()])
        for item in declared.parameters.values()
        if item.sent in declared.in_path
    ]
    if body is None:
        return parameters + list(map(_query, _outside_path(declared)))
    described_body = Body(openapi_examples=examples.of(declared.id))
    required = any(field.is_required() for field in body.model_fields.values())
    if declared.whole_body is None and not required:
        described_body = Body(default_factory=body, openapi_examples=examples.of(declared.id))
    return [*parameters, _parameter("body", Annotated[body, described_body])]


def _outside_path(declared: Operation) -> list[Parameter]:
    return [item for item in declared.parameters.values() if item.sent not in declared.in_path]


def _query(parameter: Parameter) -> inspect.Parameter:
    default = parameter.default
    if isinstance(default, list | tuple):
        # A list as the default lets the parameter be repeated in the query.
        return _parameter(
            parameter.sent, Annotated[parameter.type, Query(default_factory=lambda: default)]
        )
    return _parameter(parameter.sent, Annotated[parameter.type, Query()], default)


def _parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _body(declared: Operation) -> type[Value] | None:
    """Return the model of an operation's body; None if all parameters are in the URL."""
    if declared.method == "GET":
        return None
    if isinstance(declared.body, type):
        return declared.body
    fields: dict[str, Any] = {
        item.sent: (item.type, ... if item.required else item.default)
        for item in _outside_path(declared)
    }
    if not fields:
        return None
    name = declared.body or "".join(part.capitalize() for part in declared.id.split("_"))
    return create_model(name, __base__=Value, **fields)


def _adapter(declared: Operation) -> TypeAdapter[Any] | None:
    """Return the serializer of a result type; None for a ``Value``, which has its own."""
    sent = declared.sent
    is_class = isinstance(sent, type) and get_origin(sent) is None
    if sent is None or (is_class and issubclass(sent, Value)):
        return None
    return TypeAdapter(sent)
