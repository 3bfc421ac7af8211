"""Secrets in rows of COPY's text format: encrypted again under another key, as the rows pass by."""

import re
from collections.abc import Callable
from typing import Final

from switchboard.apps.backups.archive import ArchivedTable, ArchiveError
from switchboard.foundation.encryption.rotation import EncryptedColumn, list_encrypted_columns
from switchboard.foundation.keyring import KeyRing, SecretError

NULL: Final = b"\\N"
HEX: Final = b"\\\\x"
"""Beginning of a value of bytes, whose backslash is escaped."""
ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
ESCAPED: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def build_resealing(table: ArchivedTable, source: KeyRing, target: KeyRing) -> Callable[[bytes], bytes]:
    """Return a function that changes rows of a table: what keys of `source` encrypt is encrypted by the first key of
    `target`. It raises `ArchiveError` for a secret that cannot be decrypted.
    """
    encrypted = [each for each in list_encrypted_columns() if each.column.table.name == table.name]
    places = {name: place for place, name in enumerate(table.columns)}

    def reseal(rows: bytes) -> bytes:
        return b"".join(reseal_row(row) for row in rows.split(b"\n")[:-1])

    def reseal_row(row: bytes) -> bytes:
        fields = row.split(b"\t")
        for each in encrypted:
            place = places[each.column.name]
            if fields[place] != NULL:
                label = _build_label(each, fields, places)
                fields[place] = _reseal_value(each, fields[place], label, source, target)
        return b"\t".join(fields) + b"\n"

    return reseal if encrypted else bytes


def _build_label(encrypted: EncryptedColumn, fields: list[bytes], places: dict[str, int]) -> str:
    values = {column.name: _unescape(fields[places[column.name]]).decode() for column in encrypted.label_fields}
    return encrypted.label.format(**values)


def _reseal_value(encrypted: EncryptedColumn, field: bytes, label: str, source: KeyRing, target: KeyRing) -> bytes:
    value = bytes.fromhex(field.removeprefix(HEX).decode()) if encrypted.is_binary else _unescape(field)
    try:
        fresh = target.encrypt(source.decrypt(value.decode(), label), label).encode()
    except SecretError as error:
        raise ArchiveError(f"{encrypted.name} of {label.split('|')[2]}: {error}") from None
    return HEX + fresh.hex().encode() if encrypted.is_binary else fresh


def _unescape(field: bytes) -> bytes:
    return ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), field)
