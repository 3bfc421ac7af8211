"""Statements of SQL stand in the modules that are named for them."""

import ast
from collections.abc import Iterator
from typing import Final

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from

PLATFORM: Final = REPOSITORY / "platform/switchboard"
HOLDERS: Final = ("queries.py", "models.py")
"""Modules of a resource or an app that build statements; `models.py` for the conditions of its indexes."""
BUILDERS: Final = frozenset(
    (
        "aliased", "all_", "and_", "any_", "bindparam", "case", "cast", "col", "delete", "exists", "func", "insert",
        "literal", "not_", "null", "or_", "select", "text", "tuple_", "union_all", "update",
    )
)  # fmt: skip
METHODS: Final = frozenset(("count", "exec", "fetch", "owns"))
"""Methods of a session that take a statement or a condition."""
BACKUPS: Final = "apps/backups/"
"""Copies every table as it is, whatever its resource."""


@collect_from("platform")
def find_statements(source: Source) -> Iterator[str]:
    """Yield the builders of statements that a module of a resource or an app imports, and where it runs one."""
    if not source.path.is_relative_to(PLATFORM):
        return
    name = source.path.relative_to(PLATFORM).as_posix()
    if not name.startswith(("resources/", "apps/")) or name.startswith(BACKUPS) or source.path.name in HOLDERS:
        return
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("sqlalchemy", "sqlmodel"):
            yield from (f"{name} imports {each.name}" for each in node.names if each.name in BUILDERS)
        elif isinstance(node, ast.Attribute) and node.attr in METHODS and "session" in ast.unparse(node.value):
            yield f"{name}:{node.lineno} {ast.unparse(node)}"


def test_statements_stand_in_the_queries_of_their_resource() -> None:
    assert find_statements() == [], "move them into the resource's queries.py"
