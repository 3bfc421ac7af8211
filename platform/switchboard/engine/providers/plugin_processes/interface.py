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
        hints = get_type_hints(function)
        kind = hints.pop("return")
        is_stream = get_origin(kind) is AsyncIterator
        if name in LIFECYCLE or not (is_stream or inspect.iscoroutinefunction(function)):
            continue
        shape = Shape.VALUE
        if is_stream:
            shape, (kind,) = Shape.STREAM, get_args(kind)
        elif kind is SpeechToTextStream:
            shape, kind = Shape.TRANSCRIPTION, Transcript
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
        adapters = {argument: TypeAdapter(hint) for argument, hint in hints.items()}
        methods[name] = RemoteMethod(name, shape, signature.replace(parameters=own), adapters, TypeAdapter(kind))
    return methods
