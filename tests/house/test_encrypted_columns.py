"""Columns with encrypted texts: the decision lists them, and no statement writes one past its encryption."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

from switchboard.apps.server import app as application
from switchboard.foundation.encryption.content import get_table, list_conversation_columns, list_encrypted_models

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from

DECISION = "docs/decisions/0039-encrypted-content.md"
ENCRYPTING = ("foundation/encryption/reencryption.py", "resources/privacy/mentions.py")
"""Modules that write these columns by `encrypt_values`, or not at all."""
assert application  # imports every model

WRITTEN_BY_CORE = """
async def save(session, row, fields):
    await session.exec(update(SmsMessage).where(owns).values(status="sent", body=row.body))
    await session.exec(insert(TranscriptLine), rows)
    await session.exec(insert(Event).values(fields))
    await connection.execute(text("update delivery set due_at = now(), body = :body where id = :id"))
    await session.exec(update(Call).where(owns).values(call_summary=None, extracted_data={}, has_transcript=False))
    await session.exec(update(Delivery).where(owns).values(status="failed"))
"""


@cache
def list_columns() -> dict[str, set[str]]:
    """Return the names of the encrypted columns by the name of the model."""
    return {
        model.__name__: {column.name for column in list_conversation_columns(get_table(model))}
        for model in list_encrypted_models()
    }


def find_plain_writes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the statements that may write a text as it is. Empty values are never encrypted, and may be written."""
    columns = list_columns()
    tables = {get_table(model).name: columns[model.__name__] for model in list_encrypted_models()}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "insert" and node.args:
            if ast.unparse(node.args[0]) in columns:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
            statement = ast.unparse(node.func.value)
            model = re.match(r"update\((\w+)\)", statement)
            names = columns.get(model[1], set()) if model else set()
            given = {word.arg for word in node.keywords if not is_empty(word.value)}
            if names & given or (names and (node.args or None in given)):
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            written = re.search(r"\b(?:update|insert into) (\w+)\b(.*)", node.value, re.DOTALL)
            if written and any(
                re.search(rf"\b{name} = |[(,] *{name} *[,)]", written[2].partition("returning")[0])
                for name in tables.get(written[1], ())
            ):
                yield node.value


def is_empty(value: ast.expr) -> bool:
    return ast.unparse(value) in ("None", "{}", "[]", "''")


def test_the_decision_lists_the_encrypted_columns() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| encrypted[^|]*\|$", (REPOSITORY / DECISION).read_text(), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+\.\w+)`", row)}
    marked = {
        f"{column.table.name}.{column.name}"
        for model in list_encrypted_models()
        for column in list_conversation_columns(get_table(model))
    }
    assert documented - {"idempotency_record.body"} == marked


@collect_from("platform")
def find_plain_writes_of_modules(source: Source) -> Iterator[str]:
    if "migrations" not in source.path.parts and not source.name.endswith(ENCRYPTING):
        yield from (f"{source.name}: {statement}" for statement in find_plain_writes(source.nodes))


def test_no_statement_writes_a_text_past_its_encryption() -> None:
    assert len(list(find_plain_writes(ast.walk(ast.parse(WRITTEN_BY_CORE))))) == 4
    assert find_plain_writes_of_modules() == [], "write the texts through the session"
