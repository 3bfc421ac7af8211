"""Alembic's entry point."""

from alembic import context
from sqlmodel import SQLModel

import switchboard.migrations.tables  # noqa: F401 - every table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=SQLModel.metadata,
    compare_type=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
