"""Content of conversations in the database, encrypted under a key of its organization
(docs/decisions/0039-encrypted-content.md).

`@encrypted_content` marks the columns of a model. Their attributes always hold plain values: a flush encrypts those
that changed, and loading decrypts. A column may hold both forms, and only statements that name the column see
ciphertexts.
"""

import base64
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from string import Formatter
from typing import Any, Final, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import JsonValue
from sqlalchemy import (
    ARRAY,
    JSON,
    Column,
    ColumnElement,
    Index,
    LargeBinary,
    Table,
    Text,
    cast,
    event,
    func,
    inspect,
    literal,
    not_,
    or_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.ext.asyncio import async_session
from sqlalchemy.orm import QueryContext, Session
from sqlalchemy.orm.attributes import get_history, set_committed_value
from sqlmodel import Field, SQLModel, col, delete, select

from switchboard.foundation.database import (
    ENCRYPTION_LABEL,
    DatabaseSession,
    EncryptingSession,
    ReadSession,
    SessionParts,
    TenantTable,
    WriteSession,
    build_lock,
    encryption_label,
    is_among,
    new_id,
)
from switchboard.foundation.keyring import KeyRing

KEY_PURPOSE: Final = "texts"
RETIRED_PURPOSE: Final = "texts.retired"
"""Purpose of a key that decrypts and does not encrypt any more."""
UNREADABLE: Final = "[This text cannot be decrypted: its key was destroyed, or it was altered.]"
"""Stands for content that cannot be decrypted; in a JSON object, the value of the name `unreadable`."""
MOST_CIPHERS: Final = 1024
NONCE_BYTES: Final = 12
SIGNATURE: Final = "sbt1."
_SEALED: Final = re.compile(rf"{re.escape(SIGNATURE)}([0-9a-f]{{32}})\.([A-Za-z0-9_-]{{38,}}=*)", re.ASCII)

ModelT = TypeVar("ModelT", bound=type[TenantTable])


@dataclass(frozen=True, slots=True)
class ContentCipher:
    """Encrypts and decrypts the content of one organization under one key."""

    key_id: UUID
    cipher: AESGCM

    def encrypt(self, value: JsonValue, place: str) -> str:
        """Encrypt to `sbt1.<id of the key>.<base64 of nonce and ciphertext>`, bound to a place."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self.cipher.encrypt(nonce, json.dumps(value).encode(), place.encode())
        return f"{build_prefix(self.key_id)}{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def decrypt(self, encoded: str, place: str) -> JsonValue:
        """Decrypt the part after the prefix. Raises `InvalidTag` and `ValueError`."""
        data = base64.urlsafe_b64decode(encoded)
        value: JsonValue = json.loads(self.cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], place.encode()))
        return value


class UnreadableList(list[JsonValue]):
    """Stands for a JSON list that cannot be decrypted: an empty one."""


def encrypted_content(*names: str) -> Callable[[ModelT], ModelT]:
    """Mark columns of text, JSON objects, or JSON lists as content of conversations, which is encrypted if the
    organization's policy says so.
    """

    def mark(model: ModelT) -> ModelT:
        _MODELS[model] = names
        fields = model.__pydantic_fields__
        _LISTS.update(
            get_table(model).c[name]
            for name in names
            if isinstance(fields[name].get_default(call_default_factory=True), list)
        )
        event.listen(model, "load", lambda row, context: _decrypt_refreshed(row, context, None))
        event.listen(model, "refresh", _decrypt_refreshed)
        return model

    return mark


_MODELS: Final[dict[type[TenantTable], tuple[str, ...]]] = {}
_LISTS: Final[set[Column[JsonValue]]] = set()
"""Encrypted columns whose values are JSON lists."""


def list_encrypted_models() -> list[type[TenantTable]]:
    """List the models with encrypted content."""
    return list(_MODELS)


def list_conversation_columns(table: Table) -> list[Column[JsonValue]]:
    """List the columns of a table that may be encrypted."""
    names = next((names for model, names in _MODELS.items() if get_table(model) is table), ())
    return [table.c[name] for name in names]


def get_table(model: type[TenantTable]) -> Table:
    """Return the table of a model."""
    table: Table = inspect(model).local_table
    return table


def build_prefix(key_id: UUID | None = None) -> str:
    """Build the beginning of every encrypted value, or of those under one key."""
    return SIGNATURE if key_id is None else f"{SIGNATURE}{key_id.hex}."


def match_readable(column: Column[JsonValue]) -> ColumnElement[bool]:
    """Return the condition that a value is plain, or under a key that still exists."""
    table = column.table
    prefix = func.concat(SIGNATURE, func.replace(cast(col(OrganizationKey.id), Text), "-", ""), ".")
    key = select(OrganizationKey.id).where(
        col(OrganizationKey.organization_id) == table.c.organization_id, func.starts_with(column, prefix)
    )
    return or_(not_(match_prefix(column, SIGNATURE)), key.exists())


def match_prefix(column: Column[JsonValue], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a value begins with a prefix; null for a null."""
    if not is_json(column):
        return column.startswith(prefix, autoescape=True)
    text = column.op("#>>", return_type=Text())(literal([], ARRAY(Text)))
    return text.startswith(prefix, autoescape=True)


def is_json(column: Column[JsonValue]) -> bool:
    """Return whether a column holds JSON values."""
    return isinstance(column.type, JSON)


def is_unreadable(value: JsonValue) -> bool:
    """Return whether a value stands for one that cannot be decrypted."""
    return isinstance(value, UnreadableList) or value in (UNREADABLE, {"unreadable": UNREADABLE})


def decrypt_values(session: Session, table: Table, row: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the plain values of a row's encrypted columns by name. The row has `id` and `organization_id` too.

    Raises `SecretError` if the keyring lacks a key.
    """
    return {
        column.name: _decrypt(session, column, row["organization_id"], row["id"], row[column.name])
        for column in list_conversation_columns(table)
        if column.name in row
    }


def decrypt_content(
    keyring: KeyRing,
    wrapped: str | None,
    column: Column[JsonValue],
    *,
    organization_id: UUID,
    row_id: UUID,
    stored: str,
) -> str:
    """Return the plain value of a column of text, or `UNREADABLE`. `wrapped` is the key that the value names, as it is
    stored; None if the value is plain or the key was destroyed.

    For statements that read the key together with the value. Raises `SecretError` if the keyring lacks a key.
    """
    found = _SEALED.fullmatch(stored)
    if found is None:
        return stored
    cipher = None if wrapped is None else _open_cipher(keyring, UUID(found[1]), organization_id, wrapped)
    return str(_open(cipher, column, found[2], _build_place(column, organization_id, row_id)))


def encrypt_values(
    session: Session, table: Table, row: Mapping[str, Any], values: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return new values of a row with those encrypted that the policy wants to be."""
    columns = {column.name: column for column in list_conversation_columns(table) if column.name in values}
    cipher = _open_writing_cipher(session, row["organization_id"]) if columns else None
    if cipher is None:
        return values
    return {
        name: cipher.encrypt(value, _build_place(columns[name], row["organization_id"], row["id"]))
        if name in columns and value
        else value
        for name, value in values.items()
    }


@dataclass(slots=True)
class _SessionState:
    """Ciphers by their keys' ids, those for new content by organization, and the plain values during a flush."""

    ciphers: dict[UUID, ContentCipher | None] = field(default_factory=dict)
    writing: dict[UUID, ContentCipher | None] = field(default_factory=dict)
    plain: list[tuple[TenantTable, str, JsonValue]] = field(default_factory=list)


_STATES: Final[WeakKeyDictionary[Session, _SessionState]] = WeakKeyDictionary()


def _get_state(session: Session) -> _SessionState:
    return _STATES.setdefault(session, _SessionState())


def _get_parts(session: Session) -> SessionParts:
    door = async_session(session)
    if not isinstance(door, DatabaseSession):
        raise InvalidRequestError("content is encrypted in the sessions of the three doors only")
    return door.parts


@event.listens_for(EncryptingSession, "before_flush")
def _encrypt_changes(session: Session, _context: object, _rows: object) -> None:
    """Replace changed content by ciphertexts for the statements of this flush."""
    plain = _get_state(session).plain
    for row in (*session.new, *session.dirty):
        for name in _MODELS.get(type(row), ()):
            value = getattr(row, name)
            is_new = inspect(row).key is None
            if not value or not (is_new or get_history(row, name).has_changes()):
                continue
            cipher = _open_writing_cipher(session, row.organization_id)
            if cipher is None:
                break
            place = _build_place(get_table(type(row)).c[name], row.organization_id, row.id)
            setattr(row, name, cipher.encrypt(value, place))
            plain.append((row, name, value))


@event.listens_for(EncryptingSession, "after_flush")
@event.listens_for(EncryptingSession, "after_soft_rollback")
def _restore_plain(session: Session, _context: object) -> None:
    plain = _get_state(session).plain
    for row, name, value in plain:
        set_committed_value(row, name, value)
    plain.clear()


def _decrypt_refreshed(row: TenantTable, context: QueryContext, names: Sequence[str] | None) -> None:
    loaded = inspect(row).dict
    for name in _MODELS[type(row)]:
        stored = loaded.get(name)
        if isinstance(stored, str) and stored.startswith(SIGNATURE) and (names is None or name in names):
            column = get_table(type(row)).c[name]
            value = _decrypt(context.session, column, loaded["organization_id"], loaded["id"], stored)
            set_committed_value(row, name, value)


def _decrypt(
    session: Session, column: Column[JsonValue], organization_id: UUID, row_id: UUID, stored: JsonValue
) -> JsonValue:
    """Return a plain value, or what stands for an unreadable one. Raises `SecretError` if the keyring lacks a key."""
    found = _SEALED.fullmatch(stored) if isinstance(stored, str) else None
    if found is None:
        return stored
    cipher = _find_cipher(session, organization_id, UUID(found[1]))
    return _open(cipher, column, found[2], _build_place(column, organization_id, row_id))


def _open(cipher: ContentCipher | None, column: Column[JsonValue], encoded: str, place: str) -> JsonValue:
    try:
        if cipher is not None:
            return cipher.decrypt(encoded, place)
    except (InvalidTag, ValueError):
        pass
    if is_json(column):
        return UnreadableList() if column in _LISTS else {"unreadable": UNREADABLE}
    return UNREADABLE


def _find_cipher(session: Session, organization_id: UUID, key_id: UUID) -> ContentCipher | None:
    """Return the cipher of a key, read once in a transaction; None if the key was destroyed."""
    ciphers = _get_state(session).ciphers
    if key_id not in ciphers:
        rows = select(OrganizationKey.wrapped).where(
            col(OrganizationKey.id) == key_id, col(OrganizationKey.organization_id) == organization_id
        )
        wrapped = session.execute(rows, execution_options={"autoflush": False}).scalar_one_or_none()
        keyring = _get_parts(session).keyring
        ciphers[key_id] = None if wrapped is None else _open_cipher(keyring, key_id, organization_id, wrapped)
    return ciphers[key_id]


def _open_writing_cipher(session: Session, organization_id: UUID) -> ContentCipher | None:
    """Return the cipher for new content, looked up once in a transaction; None if it is not encrypted."""
    ciphers = _get_state(session).writing
    if organization_id not in ciphers:
        ciphers[organization_id] = None
        if _get_parts(session).encrypts_content(session, organization_id):
            key = get_or_create_key(session, organization_id, KEY_PURPOSE)
            ciphers[organization_id] = ContentCipher(key.id, AESGCM(key.secret))
    return ciphers[organization_id]


@lru_cache(MOST_CIPHERS)
def _open_cipher(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str) -> ContentCipher:
    return ContentCipher(key_id, AESGCM(unwrap_key(keyring, key_id, organization_id, wrapped).secret))


def _build_place(column: Column[JsonValue], organization_id: UUID, row_id: UUID) -> str:
    return f"{column.table.name}|{column.name}|{row_id}|{organization_id}"


# The encrypted columns: those that their models mark with `encryption_label`.

FINGERPRINT_END = len("v1.01234567")


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column with ciphertexts. `label` is the template of the place that a value is bound to."""

    column: Column[Any]
    label: str

    @property
    def name(self) -> str:
        """The name with its table, `event_target.secret`."""
        return f"{self.column.table.name}.{self.column.name}"

    @property
    def is_tenants(self) -> bool:
        """True for a column of organizations' rows, False for one of users."""
        return "organization_id" in self.column.table.c

    @property
    def label_fields(self) -> list[Column[Any]]:
        """The columns that the label names."""
        return [self.column.table.c[field] for _, field, _, _ in Formatter().parse(self.label) if field]

    @property
    def fingerprint(self) -> ColumnElement[str]:
        """The fingerprint of a value's key, as an SQL expression that reads only the beginning of the value."""
        start = func.substr(self.column, 1, FINGERPRINT_END)
        return func.split_part(func.convert_from(start, "UTF8") if self.is_binary else start, ".", 2, type_=Text)

    @property
    def is_binary(self) -> bool:
        """True for a column of bytes, False for one of text."""
        return isinstance(self.column.type, LargeBinary)


def list_encrypted_columns() -> list[EncryptedColumn]:
    """Return every encrypted column of the imported models."""
    return [
        EncryptedColumn(column, column.info[ENCRYPTION_LABEL])
        for table in SQLModel.metadata.sorted_tables
        for column in table.columns
        if ENCRYPTION_LABEL in column.info
    ]


# Rows that may exist already, for which a flush would fail.


async def insert_if_new(session: WriteSession, row: TenantTable) -> bool:
    """Insert a row unless one of its keys is taken; return whether it was inserted. Its content is encrypted if the
    organization's policy says so.
    """
    table = type(row)
    values = {name: getattr(row, name) for name in table.model_fields}
    sealed = await session.run_sync(encrypt_values, get_table(table), values, values)
    inserted = insert(table).values(sealed).on_conflict_do_nothing().returning(col(table.id))
    return (await session.exec(inserted)).first() is not None


# Keys of one organization for one purpose, encrypted under the keyring: `switchboard keys rotate` changes only their
# encryption.

KEY_BYTES = 32
WRAPPED_LABEL = "organization_key|wrapped|{id}|{organization_id}"


class OrganizationKey(TenantTable, table=True):
    """A random key of 32 bytes, in hexadecimal digits and encrypted. An organization has one for each purpose."""

    __tablename__ = "organization_key"
    __table_args__ = (Index(None, "organization_id", "purpose"),)

    purpose: str
    wrapped: str = Field(sa_column_kwargs=encryption_label(WRAPPED_LABEL))


@dataclass(frozen=True, slots=True)
class DataKey:
    """A decrypted key, 32 bytes, and its id."""

    id: UUID
    secret: bytes


async def find_organization_key(session: ReadSession, purpose: str) -> DataKey | None:
    """Return the organization's key for a purpose, or None. Raises `SecretError`."""
    return await session.run_sync(_find_key, session.organization_id, purpose)


async def find_organization_key_by_id(session: ReadSession, key_id: UUID) -> DataKey | None:
    """Return a key of the organization; None if it was destroyed. Raises `SecretError`."""
    rows = session.select(OrganizationKey).where(col(OrganizationKey.id) == key_id)
    key = (await session.exec(rows)).one_or_none()
    return None if key is None else unwrap_key(session.keyring, key.id, key.organization_id, key.wrapped)


async def get_or_create_organization_key(session: WriteSession, purpose: str) -> DataKey:
    """Return the organization's key; concurrent transactions create the same one. Raises `SecretError`."""
    return await session.run_sync(get_or_create_key, session.organization_id, purpose)


def get_or_create_key(session: Session, organization_id: UUID, purpose: str) -> DataKey:
    """Return the organization's key, which is not deleted before the transaction ends. Raises `SecretError`.

    Synchronous and without the session's flush, because a flush calls it.
    """
    found = _find_key(session, organization_id, purpose, lock=True)
    if found is None:
        session.execute(build_lock(f"key {purpose} of {organization_id}"))
        found = _find_key(session, organization_id, purpose, lock=True)
    if found is not None:
        return found
    created = DataKey(new_id(), secrets.token_bytes(KEY_BYTES))
    wrapped = _get_parts(session).keyring.encrypt(created.secret.hex(), _label(created.id, organization_id))
    row = OrganizationKey(id=created.id, organization_id=organization_id, purpose=purpose, wrapped=wrapped)
    session.execute(insert(OrganizationKey).values(row.model_dump()))
    return created


async def destroy_organization_keys(session: WriteSession, purposes: Sequence[str]) -> list[UUID]:
    """Delete the organization's keys, so that nothing under them can be decrypted any more; return their ids."""
    ours = (session.owns(OrganizationKey), is_among(col(OrganizationKey.purpose), purposes))
    destroyed = delete(OrganizationKey).where(*ours).returning(col(OrganizationKey.id))
    return list((await session.exec(destroyed)).scalars())


def unwrap_key(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str) -> DataKey:
    """Decrypt a key. Raises `SecretError`."""
    return DataKey(key_id, bytes.fromhex(keyring.decrypt(wrapped, _label(key_id, organization_id))))


def _find_key(session: Session, organization_id: UUID, purpose: str, *, lock: bool = False) -> DataKey | None:
    rows = select(OrganizationKey.id, OrganizationKey.wrapped).where(
        col(OrganizationKey.organization_id) == organization_id, col(OrganizationKey.purpose) == purpose
    )
    if lock:
        rows = rows.with_for_update(read=True, key_share=True)
    key = session.execute(rows, execution_options={"autoflush": False}).one_or_none()
    return None if key is None else unwrap_key(_get_parts(session).keyring, key.id, organization_id, key.wrapped)


def _label(key_id: UUID, organization_id: UUID) -> str:
    return WRAPPED_LABEL.format(id=key_id, organization_id=organization_id)
