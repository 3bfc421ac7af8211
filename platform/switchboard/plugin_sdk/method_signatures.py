"""Comparison of a plugin's methods with the contract of the class that they implement, before anything calls them."""

import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, Final

SDK: Final = "switchboard.plugin_sdk"
UNNAMED: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def list_contract_methods(found: type) -> dict[str, type]:
    """List the public methods that the SDK declares for a class, in the order of their names, each with the class
    that declares it.
    """
    contract = {
        name: base
        for base in reversed(found.__mro__)
        if base.__module__.startswith(SDK)
        for name, value in vars(base).items()
        if isinstance(value, FunctionType) and not name.startswith("_")
    }
    return dict(sorted(contract.items()))


def list_signature_faults(found: type) -> Iterator[str]:
    """Yield a message for each method that cannot be called as the SDK declares it.

    Further parameters are allowed if they have defaults. Annotations are not compared: type checkers do it.
    """
    for name, contract in list_contract_methods(found).items():
        expected, implementation = getattr(contract, name), getattr(found, name)
        if not callable(implementation):
            yield f"{found.__name__}.{name} is not a method"
        elif not _is_callable_as(implementation, expected):
            yield (
                f"{found.__name__} does not match {contract.__name__}: "
                f"expected `{_format(name, expected)}`, found `{_format(name, implementation)}`"
            )


def _is_callable_as(implementation: Callable[..., Any], expected: Callable[..., Any]) -> bool:
    function = inspect.unwrap(implementation)
    if inspect.iscoroutinefunction(expected) != inspect.iscoroutinefunction(function):
        return False
    contract = inspect.signature(expected)
    if inspect.isasyncgenfunction(function) and "AsyncIterator" not in str(contract.return_annotation):
        return False
    try:
        return _accepts(inspect.signature(implementation), contract)
    except (TypeError, ValueError):  # a callable of an extension module, which has no signature to compare
        return True


def _accepts(given: Signature, expected: Signature) -> bool:
    """Return whether every call that the expected signature allows is one that the given signature takes."""
    kinds = {parameter.kind for parameter in given.parameters.values()}
    named = [parameter for parameter in given.parameters.values() if parameter.kind not in UNNAMED]
    for place, parameter in enumerate(expected.parameters.values()):
        if parameter.kind is Parameter.KEYWORD_ONLY:
            taken = Parameter.VAR_KEYWORD in kinds or any(
                other.name == parameter.name and other.kind is not Parameter.POSITIONAL_ONLY for other in named
            )
        elif place < len(named):
            taken = (_strip(named[place]), named[place].kind) == (parameter.name, parameter.kind)
        else:
            taken = kinds.issuperset(UNNAMED)
        if not taken:
            return False
    return all(_strip(other) in expected.parameters or other.default is not Parameter.empty for other in named)


def _strip(parameter: Parameter) -> str:
    """Return a parameter's name. An underscore before it says that the method does not use it."""
    return parameter.name.lstrip("_")


def _format(name: str, method: Callable[..., Any]) -> str:
    """Return a method's header without annotations, as its author wrote it."""
    signature = inspect.signature(method)
    bare = [parameter.replace(annotation=Parameter.empty) for parameter in signature.parameters.values()]
    header = "async def" if inspect.iscoroutinefunction(inspect.unwrap(method)) else "def"
    return f"{header} {name}{signature.replace(parameters=bare, return_annotation=Signature.empty)}"
