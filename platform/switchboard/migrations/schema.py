"""The schema of a database, compared with the one that this program was written for.

Each migration names its `oldest_program`: the oldest schema whose programs also work with the new one. So the version
before the newest runs on beside it while processes are replaced (docs/decisions/0026-schema-versions.md).
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

FOLDER = Path(__file__).parent
"""Folder of `env.py` and of the migrations in `versions`."""


class SchemaState(Enum):
    """Comparison of a database's schema with the program's."""

    CURRENT = "current"
    PENDING = "pending"
    NEWER = "newer"
    """Newer, and made so that this program works with it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Schema:
    """Schema of a database: its revision, None for an empty one, and the program's own."""

    revision: str | None
    expected: str
    state: SchemaState


@dataclass(frozen=True, slots=True)
class Scripts:
    """The migrations of this program: the newest revision, and the `oldest_program` of each."""

    config: Config
    head: str
    oldest_programs: dict[str, str]


@cache
def load_scripts() -> Scripts:
    """Load the migrations."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    directory = ScriptDirectory.from_config(config)
    scripts = list(directory.walk_revisions())
    return Scripts(config, scripts[0].revision, {script.revision: script.module.oldest_program for script in scripts})


def compare_schema(connection: Connection) -> Schema:
    """Compare the schema of a database with the program's."""
    scripts = load_scripts()
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision == scripts.head:
        state = SchemaState.CURRENT
    elif revision is None or revision in scripts.oldest_programs:
        state = SchemaState.PENDING
    else:
        oldest = _read_compatibility(connection)
        state = SchemaState.NEWER if oldest in scripts.oldest_programs else SchemaState.UNKNOWN
    return Schema(revision, scripts.head, state)


def write_compatibility(connection: Connection) -> None:
    """Write down the oldest schema whose programs work with the present one."""
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None or not _has_compatibility(connection):
        return
    connection.execute(text("delete from schema_compatibility"))
    oldest = load_scripts().oldest_programs[revision]
    connection.execute(text("insert into schema_compatibility values (:oldest)"), {"oldest": oldest})


def _read_compatibility(connection: Connection) -> str | None:
    if not _has_compatibility(connection):
        return None
    oldest: str | None = connection.execute(text("select oldest_program from schema_compatibility")).scalar()
    return oldest


def _has_compatibility(connection: Connection) -> bool:
    """Return whether the schema is new enough to have the table."""
    return bool(connection.execute(text("select to_regclass('schema_compatibility')")).scalar())
