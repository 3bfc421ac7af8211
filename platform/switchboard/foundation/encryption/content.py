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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import JsonValue
from sqlalchemy import (
    ARRAY,
    JSON,
    Column,
    ColumnElement,
    RowMapping,
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
from sqlalchemy.orm import QueryContext, Session
from sqlalchemy.orm.attributes import get_history, set_committed_value
from sqlmodel import col, select

from switchboard.foundation.database import ENCRYPTED_CONTENT, RoleSession, TenantTable
from switchboard.foundation.encryption.organization_keys import OrganizationKey, get_or_create_key, unwrap_key
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

IsEncrypting: TypeAlias = Callable[[Session, UUID], bool]
"""Decides whether an organization's content is encrypted. The application passes it to its database's sessions as
`encrypts_content`.
"""
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
        for name in names:
            get_table(model).c[name].info[ENCRYPTED_CONTENT] = True
        fields = model.__pydantic_fields__
        _LISTS.update(
            get_table(model).c[name]
            for name in names
            if isinstance(fields[name].get_default(call_default_factory=True), list)
        )
        event.listen(model, "load", _decrypt_loaded)
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


def decrypt_values(session: Session, table: Table, row: RowMapping) -> dict[str, JsonValue]:
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


@event.listens_for(RoleSession, "before_flush")
def _encrypt_changes(session: Session, _context: object, _rows: object) -> None:
    """Replace changed content by ciphertexts for the statements of this flush."""
    plain: list[tuple[TenantTable, str, JsonValue]] = session.info.setdefault("plain_texts", [])
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


@event.listens_for(RoleSession, "after_flush")
@event.listens_for(RoleSession, "after_soft_rollback")
def _restore_plain(session: Session, _context: object) -> None:
    for row, name, value in session.info.pop("plain_texts", ()):
        set_committed_value(row, name, value)


def _decrypt_loaded(row: TenantTable, context: QueryContext) -> None:
    _decrypt_refreshed(row, context, None)


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
    ciphers: dict[UUID, ContentCipher | None] = session.info.setdefault("content_ciphers", {})
    if key_id not in ciphers:
        rows = select(OrganizationKey.wrapped).where(
            col(OrganizationKey.id) == key_id, col(OrganizationKey.organization_id) == organization_id
        )
        wrapped = session.execute(rows, execution_options={"autoflush": False}).scalar_one_or_none()
        keyring: KeyRing = session.info["keyring"]
        ciphers[key_id] = None if wrapped is None else _open_cipher(keyring, key_id, organization_id, wrapped)
    return ciphers[key_id]


def _open_writing_cipher(session: Session, organization_id: UUID) -> ContentCipher | None:
    """Return the cipher for new content, looked up once in a transaction; None if it is not encrypted."""
    ciphers: dict[UUID, ContentCipher | None] = session.info.setdefault("writing_ciphers", {})
    if organization_id not in ciphers:
        is_encrypting: IsEncrypting = session.info["encrypts_content"]
        ciphers[organization_id] = None
        if is_encrypting(session, organization_id):
            key = get_or_create_key(session, organization_id, KEY_PURPOSE)
            ciphers[organization_id] = ContentCipher(key.id, AESGCM(key.secret))
    return ciphers[organization_id]


@lru_cache(MOST_CIPHERS)
def _open_cipher(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str) -> ContentCipher:
    return ContentCipher(key_id, AESGCM(unwrap_key(keyring, key_id, organization_id, wrapped).secret))


def _build_place(column: Column[JsonValue], organization_id: UUID, row_id: UUID) -> str:
    return f"{column.table.name}|{column.name}|{row_id}|{organization_id}"
