"""A plugin's source folder: its tests, and what its `pyproject.toml` declares. Nothing in it is run."""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

SERVERS: Final = frozenset(
    {
        "aiohttp.test_utils",
        "aiohttp.web",
        "asyncio.start_server",
        "grpc.aio",
        "http.server",
        "hypercorn",
        "pytest_httpserver",
        "socketserver",
        "uvicorn",
        "websockets.asyncio.server",
    }
)
"""Modules and functions with which a test runs a server."""
ERRORS: Final = frozenset({"ActionError", "OutcomeUnknown", "ProviderError"})
"""Errors of the SDK by which a plugin reports that its vendor refused or failed."""
ANCESTORS: Final = 2
"""Folders above a plugin's own in which its tests find modules: those of a repository with several plugins."""


class _Quality(BaseModel):
    exempt: dict[str, str] = {}


class _Switchboard(BaseModel):
    quality: _Quality = _Quality()


class _Tools(BaseModel):
    switchboard: _Switchboard = _Switchboard()


class _Project(BaseModel):
    tool: _Tools = Field(default_factory=_Tools)


class SourceError(Exception):
    """A file of a plugin cannot be read. The message names it."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Facts about a source folder.

    `tested` are the names of the classes that a contract is given, `waived` the tests of contracts that are marked
    xfail, and `exemptions` the reasons of `[tool.switchboard.quality.exempt]`, by rule.
    """

    tested: frozenset[str]
    waived: tuple[str, ...]
    runs_server: bool
    expects_errors: bool
    exemptions: Mapping[str, str]


def read_source(folder: Path) -> PluginSource | None:
    """Read a plugin's source folder; return None if it has no tests. Raises `SourceError`."""
    tests = folder / "tests"
    if not tests.is_dir():
        return None
    modules = parse_modules(tests)
    suites = [node for module in modules for node in ast.walk(module) if _is_suite(node)]
    return PluginSource(
        tested=frozenset(name for suite in suites for name in _list_tested(suite)),
        waived=tuple(function.name for suite in suites for function in _list_waived(suite)),
        runs_server=_find_server(modules, [tests, folder, *folder.resolve().parents[:ANCESTORS]]),
        expects_errors=any(_expects_error(node) for module in modules for node in ast.walk(module)),
        exemptions=_read_exemptions(folder / "pyproject.toml"),
    )


def parse_modules(folder: Path) -> list[ast.Module]:
    """Parse all modules below a folder. Raises `SourceError`."""
    return [_parse(path) for path in sorted(folder.rglob("*.py"))]


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None


def _is_suite(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(_get_name(base).endswith("Contract") for base in node.bases)


def _get_name(node: ast.expr | None) -> str:
    """Return the last part of a dotted name, without its type parameters; empty for any other expression."""
    if isinstance(node, ast.Subscript):
        return _get_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _list_tested(suite: ast.AST) -> Iterator[str]:
    for function in _list_functions(suite):
        if not function.name.startswith("test_"):
            yield _get_name(function.returns)


def _list_waived(suite: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for function in _list_functions(suite):
        marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in function.decorator_list]
        if any(_get_name(mark) == "xfail" for mark in marks):
            yield function


def _list_functions(suite: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(suite) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _find_server(modules: list[ast.Module], roots: list[Path]) -> bool:
    """Tell whether tests, or what they import from `roots`, run a server."""
    read: set[Path] = set()
    unread = [*modules]
    while unread:
        module = unread.pop()
        names = {*_list_imports(module), *(ast.unparse(n) for n in ast.walk(module) if isinstance(n, ast.Attribute))}
        if names & SERVERS:
            return True
        found = {path for name in names for root in roots if (path := root / f"{name.replace('.', '/')}.py").is_file()}
        unread += [_parse(path) for path in sorted(found - read)]
        read |= found
    return False


def _list_imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _expects_error(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and _get_name(node.func) == "raises"
        and any(_get_name(name) in ERRORS for argument in node.args for name in _list_members(argument))
    )


def _list_members(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _read_exemptions(path: Path) -> Mapping[str, str]:
    text = path.read_text() if path.is_file() else ""
    try:
        return _Project.model_validate(tomllib.loads(text)).tool.switchboard.quality.exempt
    except ValueError as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
