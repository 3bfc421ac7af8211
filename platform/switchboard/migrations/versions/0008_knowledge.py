"""Knowledge bases."""

import sqlalchemy as sa
from alembic import op
from switchboard.migrations.tenancy import protect

revision = "0008"
down_revision = "0007"


def tenants(table: str) -> tuple[sa.Column[object] | sa.ForeignKeyConstraint | sa.PrimaryKeyConstraint, ...]:
    """What each table starts with."""
    return (
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("organization_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organization.id"], name=op.f(f"fk_{table}_organization_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )


def upgrade() -> None:
    op.create_table(
        "knowledge_base",
        *tenants("knowledge_base"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("embedding_provider", sa.Text(), nullable=True),
        sa.Column("embedding_model", sa.Text(), nullable=True),
        sa.Column("embedding_dimension", sa.Integer(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_knowledge_base_organization_id_id")),
    )
    op.create_index(
        op.f("ix_knowledge_base_organization_id_created_at_id"),
        "knowledge_base",
        ["organization_id", "created_at", "id"],
    )
    op.create_table(
        "knowledge_document",
        *tenants("knowledge_document"),
        sa.Column("knowledge_base_id", sa.Uuid(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("file_size", sa.Integer(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("process_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("request_key", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint("status in ('processing', 'ready', 'failed')", name=op.f("ck_knowledge_document_status")),
        sa.ForeignKeyConstraint(
            ["organization_id", "knowledge_base_id"],
            ["knowledge_base.organization_id", "knowledge_base.id"],
            name=op.f("fk_knowledge_document_organization_id_knowledge_base_id"),
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("organization_id", "id", name=op.f("uq_knowledge_document_organization_id_id")),
        sa.UniqueConstraint(
            "organization_id", "request_key", name=op.f("uq_knowledge_document_organization_id_request_key")
        ),
    )
    op.create_index(
        op.f("ix_knowledge_document_organization_id_knowledge_base_id_created_at_id"),
        "knowledge_document",
        ["organization_id", "knowledge_base_id", "created_at", "id"],
    )
    op.create_index(
        "ix_knowledge_document_processing",
        "knowledge_document",
        ["process_after"],
        postgresql_where=sa.text("status = 'processing'"),
    )
    op.create_table(
        "knowledge_text",
        *tenants("knowledge_text"),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id", "id"],
            ["knowledge_document.organization_id", "knowledge_document.id"],
            name=op.f("fk_knowledge_text_organization_id_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "vector_deletion",
        *tenants("vector_deletion"),
        sa.Column("knowledge_base_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index(op.f("ix_vector_deletion_due_at"), "vector_deletion", ["due_at"])
    op.create_index(op.f("ix_vector_deletion_organization_id_due_at"), "vector_deletion", ["organization_id", "due_at"])
    op.create_table(
        "vector_upkeep", *tenants("vector_upkeep"), sa.Column("due_at", sa.DateTime(timezone=True), nullable=False)
    )
    op.create_index(op.f("ix_vector_upkeep_due_at"), "vector_upkeep", ["due_at"])
    protect("knowledge_base")
    protect("knowledge_document", system="select")
    protect("knowledge_text")
    protect("vector_deletion", system="select")
    protect("vector_upkeep", system="select")


def downgrade() -> None:
    for table in ("vector_upkeep", "vector_deletion", "knowledge_text", "knowledge_document", "knowledge_base"):
        op.drop_table(table)
