"""No statement has a parameter for each of its rows: asyncpg refuses it from 32,768 rows on, and their number is
somebody else's choice. `is_among` takes any number of values as one parameter.
"""

import ast
from collections.abc import Iterator

from tests.house.sources import Source, collect_from


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


@collect_from("platform", "plugins")
def list_open_sets(source: Source) -> Iterator[str]:
    """Yield the places where a column is compared with a set whose size is not known."""
    comparisons = [
        (node, node.args[0])
        for node in source.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("in_", "not_in")
        and len(node.args) == 1
    ]
    if not comparisons:
        return
    selects = {
        target.id
        for node in source.nodes
        if isinstance(node, ast.Assign) and "select" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    } | {
        argument.arg
        for argument in source.nodes
        if isinstance(argument, ast.arg) and argument.annotation and "Select" in ast.unparse(argument.annotation)
    }
    for node, argument in comparisons:
        if not _is_fixed(argument, selects):
            yield f"{source.name}:{node.lineno}"


def test_no_statement_has_a_parameter_for_each_row() -> None:
    assert list_open_sets() == [], "use is_among, is_not_among, or are_among"
