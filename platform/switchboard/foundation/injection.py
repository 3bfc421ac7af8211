"""Arguments by name: a handler, job, or socket declares the parts of the process that it uses as parameters.

    async def create_agent(session: WriteSession, data: AgentCreate, keyring: KeyRing) -> AgentOut: ...
    async def dial_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID) -> None: ...

The parts are the fields of `Runtime`, such as `keyring`. A parameter may also be a service: a dataclass whose fields
are parts or other services, such as `CallDialer`; it is built from them, and frozen unless it keeps something for the
one function that names it. Parameters are resolved once, when a function is registered, so that a process with a
parameter that cannot be provided does not start.
"""

import inspect
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from functools import cache
from typing import TypeAlias

Parts: TypeAlias = Mapping[str, object]
"""The objects that a process builds at its start, by name."""


class InvalidParameter(TypeError):
    """A function names an argument that nobody provides, that has two sources, or that has another type."""


def resolve_parameters(function: Callable[..., object], parts: Parts, arguments: AbstractSet[str]) -> dict[str, object]:
    """Return the parts and services that a function names; its caller passes the `arguments`.

    Raise `InvalidParameter`, also for an argument that has the name of a part.
    """
    if hiding := arguments & parts.keys():
        raise InvalidParameter(f"{function.__qualname__}: the argument {min(hiding)} would hide the part of that name")
    return {
        name: _resolve(function, name, parameter.annotation, parts)
        for name, parameter in _list_parameters(function).items()
        if name not in arguments
    }


def list_keyword_only(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of a function's keyword-only parameters."""
    parameters = _list_parameters(function).values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


@cache
def _list_parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _resolve(function: Callable[..., object], name: str, declared: object, parts: Parts) -> object:
    if name not in parts:
        if isinstance(declared, type) and is_dataclass(declared):
            return declared(**resolve_parameters(declared, parts, frozenset()))
        raise InvalidParameter(f"{function.__qualname__}: {name}: nobody provides this argument")
    if isinstance(declared, type) and not isinstance(parts[name], declared):
        kinds = f"a {type(parts[name]).__name__}, not a {declared.__name__}"
        raise InvalidParameter(f"{function.__qualname__}: {name}: the part is {kinds}")
    return parts[name]
