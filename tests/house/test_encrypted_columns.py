"""Columns of content: the decision lists each."""

import re

from sqlmodel import SQLModel
from switchboard.apps.server import app as application
from switchboard.foundation.encryption.content import list_content_columns

from tests.fixtures.servers import REPOSITORY

DECISION = "docs/decisions/0039-encrypted-content.md"
assert application  # imports every model


def test_the_decision_lists_the_columns_of_content() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| encrypted[^|]*\|$", (REPOSITORY / DECISION).read_text(), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+\.\w+)`", row)}
    columns = {
        f"{table.name}.{column.name}"
        for table in SQLModel.metadata.sorted_tables
        for column in list_content_columns(table)
    }
    assert documented - {"idempotency_record.body"} == columns
