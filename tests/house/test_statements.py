"""No statement has a parameter for each of its rows: asyncpg refuses it from 32,768 rows on, and their number is
somebody else's choice. `is_among` takes any number of values as one parameter.
"""

import ast
from collections.abc import Iterator

from tests.fixtures.servers import REPOSITORY


def _is_fixed(argument: ast.expr, selects: set[str]) -> bool:
    """Return whether an argument of `in_` is written out, a constant, or a query."""
    if isinstance(argument, ast.Tuple | ast.List | ast.Set):
        return not any(isinstance(element, ast.Starred) for element in argument.elts)
    text = ast.unparse(argument)
    return (
        text.rpartition(".")[2].isupper()
        or "select" in text
        or "with_only_columns" in text
        or text.partition(".")[0] in selects
    )


def _list_open_sets(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which a column is compared with a set whose size is not known."""
    selects = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "select" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    } | {
        argument.arg
        for argument in ast.walk(tree)
        if isinstance(argument, ast.arg) and argument.annotation and "Select" in ast.unparse(argument.annotation)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="in_" | "not_in"), args=[argument]) if not _is_fixed(
                argument, selects
            ):
                yield node.lineno


def test_no_statement_has_a_parameter_for_each_row() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for root in ("platform", "plugins")
        for path in sorted((REPOSITORY / root).rglob("*.py"))
        for line in _list_open_sets(ast.parse(path.read_text()))
    ]
    assert not found, f"use is_among, is_not_among, or are_among: {found}"
