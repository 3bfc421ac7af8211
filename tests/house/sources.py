"""One walk over the Python sources for all rules about them, because parsing takes longer than any rule."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from tests.fixtures.servers import REPOSITORY

Found = TypeVar("Found")
ROOTS: Final = ("platform", "plugins", "tools", "tests", "bench")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file, and all nodes of its syntax tree, the module first."""

    path: Path
    text: str
    nodes: list[ast.AST]

    @property
    def name(self) -> str:
        """The path within the repository."""
        return self.path.relative_to(REPOSITORY).as_posix()

    @property
    def tree(self) -> ast.Module:
        module = self.nodes[0]
        assert isinstance(module, ast.Module)
        return module


_VISITS: Final[list[tuple[tuple[str, ...], Callable[[Source], None]]]] = []


def collect_from(
    *roots: str,
) -> Callable[[Callable[[Source], Iterable[Found]]], Callable[[], list[Found]]]:
    """Turn what a function yields for one source into a function that returns it for all sources below these folders
    (`ROOTS` if none is given).
    """

    def register(collect: Callable[[Source], Iterable[Found]]) -> Callable[[], list[Found]]:
        found: list[Found] = []

        def list_found() -> list[Found]:
            _visit_all()
            return found

        _VISITS.append((roots or ROOTS, lambda source: found.extend(collect(source))))
        return list_found

    return register


@cache
def _visit_all() -> None:
    for root in ROOTS:
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            text = path.read_text()
            source = Source(path, text, list(ast.walk(ast.parse(text))))
            for roots, visit in _VISITS:
                if root in roots:
                    visit(source)
