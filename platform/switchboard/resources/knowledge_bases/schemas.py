"""API schemas of knowledge bases."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Name,
    ReferenceId,
    RequestBody,
    UpdatedAt,
    show_example,
)
from switchboard.resources.knowledge_bases.formats import MAX_CONTENT_BYTES, TOO_LARGE

DocumentStatus = Literal["processing", "ready", "failed"]


def _at_most_5_mib(value: str) -> str:
    if len(value.encode()) > MAX_CONTENT_BYTES:
        raise ValueError(TOO_LARGE)
    return value


class KnowledgeBaseCreate(RequestBody):
    """A new knowledge base."""

    model_config = show_example(name="Bakery", description="What callers ask about.")

    name: Name
    description: Annotated[str, Field(max_length=10_000)] = Field("", description="Free text for people.")


class KnowledgeBaseOut(Answer):
    """A knowledge base."""

    id: UUID = Field(description="Id of the knowledge base.")
    name: str
    description: str
    created_at: CreatedAt
    updated_at: UpdatedAt


class DocumentCreate(RequestBody):
    """A new document."""

    model_config = show_example(
        filename="hours.md", content="# Hours\n\nWe are open from seven to six.", content_type="text/markdown"
    )

    filename: Name = Field(description="Name of the file; its extension says the type if `content_type` does not.")
    content: Annotated[
        str,
        Field(
            min_length=1, max_length=MAX_CONTENT_BYTES, description="The text, at most 5 MiB; PDF and DOCX as base64."
        ),
        AfterValidator(_at_most_5_mib),
    ]
    content_type: Annotated[str, Field(max_length=255)] | None = Field(
        None,
        description="`text/plain`, `text/markdown`, `text/html`, `text/csv`, `application/json`, `application/pdf` or "
        "`application/vnd.openxmlformats-officedocument.wordprocessingml.document`. Defaults to the extension's type.",
    )


class DocumentOut(Answer):
    """A document of a knowledge base."""

    id: UUID = Field(description="Id of the document.")
    knowledge_base_id: UUID = Field(description="Id of the knowledge base.")
    filename: str
    content_type: str
    file_size: int = Field(description="Size in bytes; of a PDF or DOCX, the size of the file.")
    chunk_count: int = Field(description="Number of passages.")
    status: DocumentStatus = Field(description="`processing` becomes `ready` (it is found) or `failed`.")
    error_message: str | None = Field(description="Reason for `failed`, in words.")
    created_at: CreatedAt


class KnowledgeSearch(RequestBody):
    """A search of knowledge bases."""

    model_config = show_example(query="When do you open?", top_k=3)

    query: Annotated[str, Field(min_length=1, max_length=10_000)] = Field(description="Question or words to look for.")
    knowledge_base_ids: Annotated[list[ReferenceId], Field(max_length=1_000)] | None = Field(
        None, description="Knowledge bases to search; defaults to all of the organization's."
    )
    top_k: Annotated[int, Field(ge=1, le=50)] = Field(5, description="Maximum number of passages.")


class PassageOut(Answer):
    """A matching passage. Scores of different searches cannot be compared."""

    document_id: UUID = Field(description="Id of the document.")
    knowledge_base_id: UUID = Field(description="Id of the knowledge base.")
    filename: str = Field(description="Name of the document's file.")
    chunk_index: int = Field(description="Position of the passage in the document, from 0.")
    content: str = Field(description="Text of the passage.")
    score: float = Field(description="Similarity to the query; higher is better.")


class PassagesOut(Answer):
    """Matching passages, best first."""

    items: list[PassageOut] = Field(description="Passages, best first.")
