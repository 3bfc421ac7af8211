"""Peer of `bench/api`: contacts over FastAPI, SQLModel, and uvicorn, written as FastAPI's documentation and its
full-stack template write them: one session for each request, a dependency that looks the key up, a count, and a page.

Arguments are the port, the URL of the database, the key, and the number of contacts, which the server creates.
"""

import hashlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

import uvicorn
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import DateTime, UniqueConstraint
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlmodel import Field, Index, SQLModel, col, func, select
from sqlmodel.ext.asyncio.session import AsyncSession


def build_contact(number: int) -> dict[str, object]:
    """Return the body of a contact, the same for both servers."""
    return {
        "phone_number": f"+1555{number:07}",
        "name": f"Ada Lovelace {number}",
        "email": f"ada.{number}@example.com",
        "company": "Analytical Engines",
        "notes": "Prefers to be called in the morning.",
        "tags": "customer, vip",
        "address": "12 Example Street, Springfield",
        "role": "buyer",
    }


def read_clock() -> datetime:
    return datetime.now(UTC)


Moment: Any = Field(default_factory=read_clock, sa_type=DateTime(timezone=True))  # type: ignore[call-overload]


class PeerKey(SQLModel, table=True):
    """A key of an organization."""

    key_hash: bytes = Field(primary_key=True)
    organization_id: UUID = Field(default_factory=uuid4)


class ContactBase(SQLModel):
    """Fields of a contact in requests, responses, and the table."""

    phone_number: str
    name: str | None = None
    email: str | None = None
    company: str | None = None
    notes: str | None = None
    tags: str | None = None
    address: str | None = None
    role: str | None = None
    is_favorite: bool = False


class PeerContact(ContactBase, table=True):
    """A contact."""

    __table_args__ = (
        UniqueConstraint("organization_id", "phone_number"),
        Index("ix_peer", "organization_id", "created_at", "id"),
    )

    id: UUID = Field(default_factory=uuid4, primary_key=True)
    organization_id: UUID
    created_at: datetime = Moment
    updated_at: datetime = Moment


class ContactPublic(ContactBase):
    """A contact in a response."""

    id: UUID
    created_at: datetime
    updated_at: datetime


class ContactPage(SQLModel):
    """A page of contacts."""

    items: list[ContactPublic]
    total: int


def create_application(url: str, key: str, rows: int) -> FastAPI:
    engine = create_async_engine("postgresql+asyncpg://", connect_args={"dsn": url}, pool_size=20)
    sessions = async_sessionmaker(engine, class_=AsyncSession, expire_on_commit=False)

    @asynccontextmanager
    async def fill(_application: FastAPI) -> AsyncIterator[None]:
        async with engine.begin() as connection:
            tables = [SQLModel.metadata.tables[name] for name in ("peerkey", "peercontact")]
            await connection.run_sync(SQLModel.metadata.create_all, tables=tables)
        async with sessions() as session:
            owner = PeerKey(key_hash=hashlib.sha256(key.encode()).digest())
            session.add(owner)
            fields = {"organization_id": owner.organization_id}
            session.add_all(PeerContact.model_validate(build_contact(n), update=fields) for n in range(rows))
            await session.commit()
        yield
        await engine.dispose()

    async def open_session() -> AsyncIterator[AsyncSession]:
        async with sessions() as session:
            yield session

    session_dependency = Annotated[AsyncSession, Depends(open_session)]
    bearer = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]

    async def find_organization(session: session_dependency, bearer: bearer) -> UUID:
        found = await session.get(PeerKey, hashlib.sha256(bearer.credentials.encode()).digest())
        if found is None:
            raise HTTPException(401)
        return found.organization_id

    owner = Annotated[UUID, Depends(find_organization)]
    application = FastAPI(lifespan=fill)

    @application.get("/v1/contacts", response_model=ContactPage)
    async def list_contacts(session: session_dependency, owner: owner, limit: int = 50, offset: int = 0) -> ContactPage:
        owned = col(PeerContact.organization_id) == owner
        total = (await session.exec(select(func.count()).select_from(PeerContact).where(owned))).one()
        newest = col(PeerContact.created_at).desc(), col(PeerContact.id).desc()
        rows = await session.exec(select(PeerContact).where(owned).order_by(*newest).limit(limit).offset(offset))
        return ContactPage(items=[ContactPublic.model_validate(row) for row in rows.all()], total=total)

    @application.get("/v1/contacts/{contact_id}", response_model=ContactPublic)
    async def get_contact(session: session_dependency, owner: owner, contact_id: UUID) -> PeerContact:
        contact = await session.get(PeerContact, contact_id)
        if contact is None or contact.organization_id != owner:
            raise HTTPException(404)
        return contact

    @application.post("/v1/contacts", response_model=ContactPublic, status_code=201)
    async def create_contact(session: session_dependency, owner: owner, data: ContactBase) -> PeerContact:
        contact = PeerContact.model_validate(data, update={"organization_id": owner})
        session.add(contact)
        await session.commit()
        await session.refresh(contact)
        return contact

    return application


if __name__ == "__main__":
    port, database_url, credential, contacts = sys.argv[1:]
    uvicorn.run(create_application(database_url, credential, int(contacts)), host="127.0.0.1", port=int(port))
