"""Methods of a capability as requests: derived from the SDK's base class, so that its signatures are the protocol."""

import inspect
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from switchboard.plugin_sdk import ProviderSettings, SpeechToTextStream, Transcript
from switchboard.plugin_sdk.method_signatures import list_contract_methods
from switchboard.plugin_sdk.provider import Provider

LIFECYCLE = frozenset({"open", "close"})
"""Methods that the start and the end of the process call."""


class Shape(Enum):
    """Kinds of replies to a request."""

    VALUE = "value"
    STREAM = "stream"
    TRANSCRIPTION = "transcription"


@dataclass(frozen=True, slots=True)
class RemoteMethod:
    """A method that a request can call."""

    name: str
    shape: Shape
    signature: inspect.Signature
    arguments: Mapping[str, TypeAdapter[Any]]
    result: TypeAdapter[Any]
    """Type of the result, or of each item."""

    def parse_arguments(self, values: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments as the method takes them. Raises `ValueError`."""
        return {name: self.arguments[name].validate_python(value) for name, value in values.items()}

    def bind(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call, without `self`, by their names."""
        return dict(self.signature.bind(*arguments, **options).arguments)


@cache
def list_remote_methods(base: type[Provider[ProviderSettings]]) -> Mapping[str, RemoteMethod]:
    """Return the asynchronous methods of a capability's base class, by name.

    A plain method cannot wait for another process, and keeps the base class's implementation.
    """
    methods = {}
    for name in list_contract_methods(base):
        function = getattr(base, name)
        result = get_type_hints(function)["return"]
        is_stream = get_origin(result) is AsyncIterator
        if name not in LIFECYCLE and (is_stream or inspect.iscoroutinefunction(function)):
            methods[name] = _describe(name, function, result, is_stream=is_stream)
    return methods


def _describe(name: str, function: Any, result: Any, *, is_stream: bool) -> RemoteMethod:
    hints = {name: hint for name, hint in get_type_hints(function).items() if name != "return"}
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    shape, kind = Shape.VALUE, result
    if is_stream:
        shape, (kind,) = Shape.STREAM, get_args(result)
    elif result is SpeechToTextStream:
        shape, kind = Shape.TRANSCRIPTION, Transcript
    return RemoteMethod(
        name,
        shape,
        signature.replace(parameters=own),
        {name: TypeAdapter(hint) for name, hint in hints.items()},
        TypeAdapter(kind),
    )
