"""Knowledge bases: documents and search."""

from uuid import UUID

from pydantic import Field
from quart import Response, request

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms.form import Files, Form
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import Database, ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import FieldError, NotFound, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, Query
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.agents.queries import list_agents_using_knowledge_base
from switchboard.resources.knowledge_bases import ingestion
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.knowledge_bases.extraction import ENDINGS
from switchboard.resources.knowledge_bases.models import KnowledgeBase, KnowledgeDocument
from switchboard.resources.knowledge_bases.queries import select_documents, summarize_contents
from switchboard.resources.knowledge_bases.schemas import DocumentCreate, KnowledgeBaseCreate
from switchboard.resources.knowledge_bases.search import PassageSearch

SHOWN_CHARACTERS = 50_000


class SearchQuery(Query):
    """A search query, in one knowledge base or in all."""

    query: str = Field("", max_length=10_000)
    knowledge_base_id: str | None = Field(None, max_length=64)
    top_k: int = Field(5, ge=1, le=50)


@page("/dashboard/knowledge")
async def knowledge_page(session: ReadSession, query: PageQuery) -> str:
    bases = await load_list(session, session.select(KnowledgeBase), query)
    return await render("dashboard/knowledge/list.html", bases=bases, holdings=await summarize_contents(session))


@page("/dashboard/knowledge/new", role="builder")
async def new_knowledge_base_page(form: Form) -> str:
    return await render("dashboard/knowledge/edit.html", form=form, base=None)


@action("/dashboard/knowledge/new", invalid=new_knowledge_base_page)
async def add_knowledge_base(session: WriteSession, data: KnowledgeBaseCreate) -> Next:
    base = await knowledge.create_knowledge_base(session, data)
    return go_to(
        "knowledge_base_page", _("%(name)s was created. Add its first document.", name=base.name), base_id=base.id
    )


@page("/dashboard/knowledge/search")
async def search_knowledge_page(viewer: Viewer, query: SearchQuery, database: Database, search: PassageSearch) -> str:
    """Search as an agent does. No transaction is open while the embedding model runs."""
    fault, found = "", []
    async with database.read(viewer.organization_id) as session:
        bases = await knowledge.resolve_knowledge_bases(session, None)
    chosen = [query.knowledge_base_id] if query.knowledge_base_id else None
    if query.query:
        try:
            found = await search.search_passages(
                viewer.organization_id, query.query, knowledge_base_ids=chosen, limit=query.top_k
            )
        except ProviderError as error:
            fault = error.message
        except ValidationFailed:
            raise NotFound(_("The knowledge base does not exist.")) from None
    best = max((passage.score for passage in found), default=0.0)
    names = {base.id: base.name for base in bases}
    return await render(
        "dashboard/knowledge/search.html", query=query, names=names, found=found, best=best, fault=fault
    )


@page("/dashboard/knowledge/<base_id>")
async def knowledge_base_page(session: ReadSession, base_id: UUID, query: PageQuery, form: Form) -> str:
    """Show a knowledge base with its documents."""
    base = await get_row(session, KnowledgeBase, base_id)
    return await render(
        "dashboard/knowledge/base.html",
        base=base,
        documents=await load_list(session, select_documents(session, base_id), query),
        users=await list_agents_using_knowledge_base(session, base_id),
        endings=",".join(ENDINGS),
        form=form,
        pasted=Form() if form.error("files") else form,
    )


@live_part("/dashboard/knowledge/<base_id>/documents")
async def live_documents(session: ReadSession, base_id: UUID, query: PageQuery) -> str:
    """Render the documents, which may be being processed."""
    await get_row(session, KnowledgeBase, base_id)
    found = await load_list(session, select_documents(session, base_id), query)
    return await render_part("dashboard/knowledge/documents.html", documents=found)


@action("/dashboard/knowledge/<base_id>/upload", invalid=knowledge_base_page)
async def upload_documents(viewer: Viewer, base_id: UUID, files: Files, database: Database) -> Next | Response:
    """Add files; an invalid file does not affect the others.

    `upload.js` sends one file at a time and accepts `text/plain`: the response is the file's error, or empty.
    """
    given = [file for file in files.getlist("files") if file.filename]
    faults: list[FieldError] = [] if given else [FieldError(field="files", message=_("Choose at least one file."))]
    for file in given:
        try:
            filename, actor = (file.filename or "")[-255:], viewer.principal.actor
            await ingestion.add_file(database, viewer.organization_id, base_id, filename, file.read(), actor=actor)
        except ValidationFailed as refusal:
            faults += [
                FieldError(field="files", message=f"{file.filename} {_(fault['message'])}.") for fault in refusal.errors
            ]
    problems = " ".join(fault["message"] for fault in faults)
    if request.headers.get("Accept") == "text/plain":
        return Response(problems, content_type="text/plain; charset=utf-8")
    if faults:
        raise ValidationFailed(errors=[FieldError(field="files", message=problems)])
    return go_to(
        "knowledge_base_page",
        ngettext(
            "%(number)s document is being processed.",
            "%(number)s documents are being processed.",
            len(given),
            number=len(given),
        ),
        base_id=base_id,
    )


@action("/dashboard/knowledge/<base_id>/paste", invalid=knowledge_base_page)
async def paste_document(viewer: Viewer, base_id: UUID, data: DocumentCreate, database: Database) -> Next:
    """Add pasted text as a document."""
    await ingestion.add_text(database, viewer.organization_id, base_id, data, actor=viewer.principal.actor)
    return go_to("knowledge_base_page", _("%(filename)s is being processed.", filename=data.filename), base_id=base_id)


@page("/dashboard/knowledge/<base_id>/edit", role="builder")
async def edit_knowledge_base_page(session: ReadSession, base_id: UUID, form: Form) -> str:
    """Show the form for name and description."""
    base = await get_row(session, KnowledgeBase, base_id)
    return await render(
        "dashboard/knowledge/edit.html",
        form=form.starting_with({"name": base.name, "description": base.description}),
        base=base,
    )


@action("/dashboard/knowledge/<base_id>/edit", invalid=edit_knowledge_base_page)
async def save_knowledge_base(session: WriteSession, base_id: UUID, data: KnowledgeBaseCreate) -> Next:
    """Update the name and description."""
    await knowledge.rename_knowledge_base(session, base_id, data)
    return go_to("knowledge_base_page", _("Saved."), base_id=base_id)


@action("/dashboard/knowledge/<base_id>/delete")
async def delete_knowledge_base(session: WriteSession, base_id: UUID) -> Next:
    """Delete a knowledge base and its documents."""
    await knowledge.delete_knowledge_base(session, base_id)
    return go_to("knowledge_page", _("Knowledge base deleted."), "warning")


@page("/dashboard/documents/<document_id>")
async def document_page(session: ReadSession, document_id: UUID) -> str:
    """Show a document with the beginning of its text."""
    document = await get_row(session, KnowledgeDocument, document_id)
    text = await knowledge.get_document_text(session, document_id)
    base = await get_row(session, KnowledgeBase, document.knowledge_base_id)
    return await render(
        "dashboard/knowledge/document.html",
        document=document,
        base=base,
        text=text[:SHOWN_CHARACTERS],
        is_whole=len(text) <= SHOWN_CHARACTERS,
    )


@live_part("/dashboard/documents/<document_id>/status")
async def live_document(session: ReadSession, document_id: UUID) -> str:
    return await render_part(
        "dashboard/knowledge/status.html", document=await get_row(session, KnowledgeDocument, document_id)
    )


@page("/dashboard/documents/<document_id>/text")
async def document_text(session: ReadSession, document_id: UUID) -> Response:
    """Serve the full text of a document, as agents receive it."""
    return Response(await knowledge.get_document_text(session, document_id), content_type="text/plain; charset=utf-8")


@action("/dashboard/documents/<document_id>/retry")
async def retry_document(session: WriteSession, document_id: UUID) -> Next:
    """Process a failed document again."""
    document = await knowledge.retry_document(session, document_id)
    return go_to(
        "document_page",
        _("%(filename)s is being processed again.", filename=document.filename),
        document_id=document_id,
    )


@action("/dashboard/documents/<document_id>/delete")
async def delete_document(session: WriteSession, document_id: UUID) -> Next:
    document = await get_row(session, KnowledgeDocument, document_id)
    await knowledge.delete_document(session, document_id)
    return go_to(
        "knowledge_base_page",
        _("%(filename)s was deleted.", filename=document.filename),
        "warning",
        base_id=document.knowledge_base_id,
    )
