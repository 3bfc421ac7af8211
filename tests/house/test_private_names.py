"""Private names of libraries are in one list, and each of those libraries has an upper bound of its version."""

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Final

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from

USES: Final = {
    ("platform/switchboard/apps/cli/generated_pages.py", "_labelnames"): "prometheus-client",
    ("platform/switchboard/apps/server/http_server.py", "_check_protocol"): "hypercorn",
}
"""Each private name by its file, with the library that may rename it."""
DOCUMENTED: Final = {
    "_Element": "the type of lxml's elements, which its typing stubs have no other name for",
    "_current_frames": "sys._current_frames",
    "_exit": "os._exit",
    "_get_current_object": "werkzeug.local.LocalProxy._get_current_object",
    "_saxparser": "the module of lxml's typing stubs, for type checkers only",
}
"""Names that begin with an underscore and are documented all the same."""
NAMES: Final = re.compile(r"_[A-Za-z][A-Za-z0-9_]*")


def _list_imports(source: Source) -> dict[str, tuple[str, str]]:
    """Return the module, and the name in it, of each name that a file imports from a library."""
    found: dict[str, tuple[str, str]] = {}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: (alias.name, "") for alias in node.names}
    return {name: place for name, place in found.items() if not place[0].startswith(("switchboard", "tests"))}


def _list_library_bases(node: ast.ClassDef, imports: dict[str, tuple[str, str]]) -> list[object]:
    """Return the base classes of a class that come from libraries; those of Python itself are left out."""
    bases = []
    for base in node.bases:
        parts = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).split(".")
        module, name = imports.get(parts[0], ("", ""))
        if module and module.partition(".")[0] not in sys.stdlib_module_names:
            found: object = importlib.import_module(module)
            for part in filter(None, (name, *parts[1:])):
                found = getattr(found, part)
            bases.append(found)
    return bases


def _list_names_of_bases(node: ast.ClassDef, imports: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the private names of its libraries' base classes that a class overrides, or uses by `self`."""
    bases = _list_library_bases(node, imports)
    if not bases:
        return
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
    own = {*methods, *(field.id for field in fields if isinstance(field, ast.Name))}
    selves = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and _is_self(part.value)]
    own |= {part.attr for part in selves if isinstance(part.ctx, ast.Store)}
    for name in sorted({*own, *(part.attr for part in selves)}):
        if NAMES.fullmatch(name) and (name not in own or any(hasattr(base, name) for base in bases)):
            yield name


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@collect_from("platform", "plugins")
def list_private_names(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the file and the name of each private name of a library."""
    if re.search(r"/tests/|plugin_sdk/(testing|template)/", source.name):
        return
    imports = _list_imports(source)
    for module, name in imports.values():
        yield from ((source.name, part) for part in (*module.split("."), name) if NAMES.fullmatch(part))
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            yield from ((source.name, name) for name in _list_names_of_bases(node, imports))
        elif isinstance(node, ast.Attribute) and NAMES.fullmatch(node.attr):
            line = source.text.splitlines()[node.lineno - 1]
            is_type = isinstance(node.value, ast.Name) and node.value.id in imports
            if (is_type or "SLF001" in line) and not _is_self(node.value):
                yield source.name, node.attr


def test_private_names_of_libraries_are_listed() -> None:
    found = {place for place in list_private_names() if place[1] not in DOCUMENTED}
    assert found - USES.keys() == set(), "use the documented surface, or list the name with its library"
    assert USES.keys() - found == set(), "these names are not used any more"
    assert {name for _, name in list_private_names()} >= DOCUMENTED.keys()


def test_a_library_with_private_names_has_an_upper_bound() -> None:
    project = tomllib.loads((REPOSITORY / "platform" / "pyproject.toml").read_text())["project"]
    bounds = {re.split(r"[\[<>=! ;]", line)[0]: line for line in project["dependencies"]}
    unbounded = {library for library in USES.values() if "<" not in bounds[library]}
    assert not unbounded, f"a version without these names may come: {unbounded}"
