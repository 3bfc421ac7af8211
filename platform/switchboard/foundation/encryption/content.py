"""Content of conversations in the database, encrypted under a key of its organization
(docs/decisions/0039-encrypted-content.md).

A column of content holds `Content`: what a service assigns is plain until `seal_content`, and what a row has loaded is
sealed until `open_content`. The column's type refuses everything else, in rows and in statements. A column may hold
both forms; a condition in SQL sees what is stored.
"""

import base64
import json
import os
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache, lru_cache
from typing import Any, ClassVar, Final, Generic, TypeVar, cast
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BeforeValidator, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema
from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Dialect,
    Table,
    Text,
    TypeDecorator,
    func,
    inspect,
    literal,
    not_,
    or_,
    type_coerce,
)
from sqlalchemy import cast as cast_column
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.types import TypeEngine
from sqlmodel import Field, SQLModel, col, select

from switchboard.foundation.database import DatabaseSession, TenantOwned, WriteSession
from switchboard.foundation.encryption.organization_keys import (
    OrganizationKey,
    get_or_create_organization_key,
    unwrap_key,
)
from switchboard.foundation.keyring import KeyRing

KEY_PURPOSE: Final = "texts"
RETIRED_PURPOSE: Final = "texts.retired"
"""Purpose of a key that decrypts and does not encrypt any more."""
UNREADABLE: Final = "[This text cannot be decrypted: its key was destroyed, or it was altered.]"
"""Stands for a text that cannot be decrypted; for a JSON object, the value of the name `unreadable`."""
MOST_CIPHERS: Final = 1024
NONCE_BYTES: Final = 12
SIGNATURE: Final = "sbt1."
_SEALED: Final = re.compile(rf"{re.escape(SIGNATURE)}([0-9a-f]{{32}})\.([A-Za-z0-9_-]{{38,}}=*)", re.ASCII)

ValueT = TypeVar("ValueT")


class Content(Generic[ValueT]):
    """A text, JSON object, or JSON list of a conversation. An empty value is stored as it is, and needs no seal."""

    __slots__ = ("_stored", "_value", "is_open", "is_readable", "is_sealed")

    def __init__(self, value: ValueT) -> None:
        """Take a plain value."""
        self._value = value
        self._stored = cast("JsonValue", value)
        self.is_open, self.is_sealed = True, not value
        self.is_readable = True
        """False once it was opened and could not be decrypted."""

    @classmethod
    def load(cls, stored: JsonValue) -> "Content[ValueT]":
        """Take a value as it is stored."""
        content = cls(cast("ValueT", stored))
        content.is_open, content.is_sealed = not stored, True
        return content

    @property
    def value(self) -> ValueT:
        """The plain value, or what stands for one that cannot be decrypted. Raises `InvalidRequestError` for one that
        was loaded and not opened.
        """
        if not self.is_open:
            raise InvalidRequestError("this content was loaded and not opened: `open_content` does it")
        return self._value

    @property
    def stored(self) -> JsonValue:
        """The value as it is stored. Raises `InvalidRequestError` for one that was assigned and not sealed."""
        if not self.is_sealed:
            raise InvalidRequestError("this content was assigned and not sealed: `seal_content` does it")
        return self._stored

    def open(self, value: JsonValue, *, is_readable: bool = True) -> None:
        """Set the plain value, or what stands for it."""
        self._value, self.is_open, self.is_readable = cast("ValueT", value), True, is_readable

    def seal(self, stored: JsonValue) -> None:
        """Set the value that is stored."""
        self._stored, self.is_sealed = stored, True

    def __bool__(self) -> bool:
        raise TypeError("a Content is neither true nor false: ask its `value`")

    def __str__(self) -> str:
        raise TypeError("a Content has no text of its own: read its `value`")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let models have fields of this class; they are serialized as the plain value."""
        dump = core_schema.plain_serializer_function_ser_schema(lambda content: content.value)
        return core_schema.is_instance_schema(cls, serialization=dump)


PLAIN: Final = BeforeValidator(lambda value: value.value if isinstance(value, Content) else value)
"""Reads a field of an answer from content: `body: Annotated[str, PLAIN]`."""


class ContentText(TypeDecorator[Content[Any]]):
    """A column of text that holds content."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = Text
    cache_ok = True
    empty: type[Any] = str
    stand_in: ClassVar[JsonValue] = UNREADABLE
    """What stands for a value that cannot be decrypted."""

    def process_bind_param(self, value: Content[Any] | None, dialect: Dialect) -> object:
        if isinstance(value, Content | None):
            return None if value is None else value.stored
        raise InvalidRequestError("a column of content takes `Content`, and is compared with nothing else")

    def process_result_value(self, value: JsonValue, dialect: Dialect) -> Content[Any]:
        return Content.load(value)


class ContentObject(ContentText):
    """A column of a JSON object that holds content; an encrypted one is stored as a JSON string."""

    impl = JSONB(none_as_null=True)
    cache_ok = True
    empty: type[Any] = dict
    stand_in: ClassVar[JsonValue] = {"unreadable": UNREADABLE}


class ContentList(ContentObject):
    """A column of a JSON list that holds content. An empty one stands for one that cannot be decrypted."""

    cache_ok = True
    empty = list
    stand_in: ClassVar[JsonValue] = []


def content_column(kind: type[ContentText], *, nullable: bool = False) -> Any:
    """Define a column of content, empty by default. It is encrypted if the organization's policy says so."""
    return Field(default_factory=lambda: Content(None if nullable else kind.empty()), sa_type=kind(), nullable=nullable)


@cache
def list_content_columns(table: Table) -> list[Column[Content[Any]]]:
    """List the columns of a table that hold content."""
    return [column for column in table.columns if isinstance(column.type, ContentText)]


def list_content_tables() -> list[Table]:
    """List the tables with content."""
    return [table for table in SQLModel.metadata.sorted_tables if list_content_columns(table)]


def get_table(model: type[TenantOwned]) -> Table:
    """Return the table of a model."""
    table: Table = inspect(model).local_table
    return table


def build_prefix(key_id: UUID | None = None) -> str:
    """Build the beginning of every encrypted value, or of those under one key."""
    return SIGNATURE if key_id is None else f"{SIGNATURE}{key_id.hex}."


def match_readable(column: Column[Content[Any]]) -> ColumnElement[bool]:
    """Return the condition that a text is plain, or under a key that still exists."""
    table = column.table
    prefix = func.concat(SIGNATURE, func.replace(cast_column(col(OrganizationKey.id), Text), "-", ""), ".")
    key = select(OrganizationKey.id).where(
        col(OrganizationKey.organization_id) == table.c.organization_id,
        func.starts_with(type_coerce(column, Text), prefix),
    )
    return or_(not_(match_prefix(column, SIGNATURE)), key.exists())


def match_prefix(column: Column[Content[Any]], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a stored value begins with a prefix; null for a null."""
    if not isinstance(column.type, ContentObject):
        return type_coerce(column, Text).startswith(prefix, autoescape=True)
    text = type_coerce(column, JSONB).op("#>>", return_type=Text())(literal([], ARRAY(Text)))
    return text.startswith(prefix, autoescape=True)


async def open_content(session: DatabaseSession, *rows: TenantOwned) -> None:
    """Decrypt the content of rows that were loaded. Raises `SecretError` if the keyring lacks a key."""
    for row in rows:
        await open_columns(session, get_table(type(row)), vars(row))


async def open_columns(session: DatabaseSession, table: Table, *rows: Mapping[str, Any]) -> None:
    """Decrypt the content in columns of rows, which have their key and `organization_id`, too. Raises `SecretError`."""
    for row in rows:
        for column in list_content_columns(table):
            if column.name in row and not row[column.name].is_open:
                wrapped = await _read_key(session, row[column.name], row["organization_id"])
                open_under_key(session.keyring, wrapped, column, row)


async def seal_content(session: WriteSession, *rows: TenantOwned) -> None:
    """Encrypt the content that was assigned to rows, before they are written, if the organization's policy says so."""
    for row in rows:
        is_new = inspect(row).key is None
        for column in list_content_columns(get_table(type(row))):
            content: Content[Any] = getattr(row, column.name)
            if is_new or not content.is_sealed:
                await seal_value(session, column, content, vars(row))


async def seal_value(
    session: WriteSession, column: Column[Content[Any]], content: Content[Any], row: Mapping[str, Any]
) -> None:
    """Encrypt a value for the column of a row with this key, if the organization's policy says so. An empty one stays
    as it is.
    """
    stored = content.value
    with session.no_autoflush:
        if stored and await session.parts.encrypts_content(session):
            if session.content_key is None:
                session.content_key = await get_or_create_organization_key(session, KEY_PURPOSE)
            key, nonce = session.content_key, os.urandom(NONCE_BYTES)
            sealed = nonce + AESGCM(key.secret).encrypt(nonce, json.dumps(stored).encode(), _build_place(column, row))
            stored = f"{build_prefix(key.id)}{base64.urlsafe_b64encode(sealed).decode()}"
    content.seal(stored)


def open_under_key(keyring: KeyRing, wrapped: str | None, column: Column[Content[Any]], row: Mapping[str, Any]) -> None:
    """Decrypt the content in a column of a row, which has its key and `organization_id`, too. `wrapped` is the key that
    the value names, as it is stored; None if the value is plain or the key was destroyed.

    Raises `SecretError` if the keyring lacks a key.
    """
    content: Content[Any] = row[column.name]
    if (sealed := _split(content)) is None:
        content.open(content.stored)
        return
    key_id, text = sealed
    cipher = _create_cipher(keyring, key_id, row["organization_id"], wrapped)
    try:
        if cipher is None:
            raise InvalidTag
        data = base64.urlsafe_b64decode(text)
        content.open(json.loads(cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], _build_place(column, row))))
    except (InvalidTag, ValueError):
        content.open(deepcopy(cast("ContentText", column.type).stand_in), is_readable=False)


async def _read_key(session: DatabaseSession, content: Content[Any], organization_id: UUID) -> str | None:
    """Return the key that a value names, as it is stored. It is read once in a transaction."""
    if (sealed := _split(content)) is None:
        return None
    key_id, _ = sealed
    if key_id not in session.content_keys:
        rows = select(OrganizationKey.wrapped).where(
            col(OrganizationKey.id) == key_id, col(OrganizationKey.organization_id) == organization_id
        )
        session.content_keys[key_id] = (await session.exec(rows)).one_or_none()
    return session.content_keys[key_id]


def _split(content: Content[Any]) -> tuple[UUID, str] | None:
    """Return the id of an encrypted value's key, and its nonce and ciphertext; None for a plain value."""
    stored = content.stored
    found = _SEALED.fullmatch(stored) if isinstance(stored, str) else None
    return found and (UUID(found[1]), found[2])


@lru_cache(MOST_CIPHERS)
def _create_cipher(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str | None) -> AESGCM | None:
    return None if wrapped is None else AESGCM(unwrap_key(keyring, key_id, organization_id, wrapped).secret)


def _build_place(column: Column[Content[Any]], row: Mapping[str, Any]) -> bytes:
    """Build the place that a value is bound to, with the id of its row, or the columns of the row's key."""
    key = "|".join(str(row[part.name]) for part in column.table.primary_key if part.name != "organization_id")
    return f"{column.table.name}|{column.name}|{key}|{row['organization_id']}".encode()
