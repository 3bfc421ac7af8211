"""Encryption at rest: values under the keyring and their rotation, keys of organizations, and texts under them."""

from switchboard.foundation.encryption.columns import EncryptedColumn, list_encrypted_columns
from switchboard.foundation.encryption.key_check import KeyCheck
from switchboard.foundation.encryption.organization_keys import (
    DataKey,
    OrganizationKey,
    destroy_organization_keys,
    find_organization_key,
    find_organization_key_by_id,
    get_or_create_organization_key,
)
from switchboard.foundation.encryption.reencryption import (
    TableReencryption,
    delete_unused_text_keys,
    reencrypt_texts,
    retire_text_key,
)
from switchboard.foundation.encryption.rotation import ColumnRotation, rotate_keys
from switchboard.foundation.encryption.system_queries import count_values_by_key
from switchboard.foundation.encryption.texts import encrypted_texts

__all__ = [
    "ColumnRotation",
    "DataKey",
    "EncryptedColumn",
    "KeyCheck",
    "OrganizationKey",
    "TableReencryption",
    "count_values_by_key",
    "delete_unused_text_keys",
    "destroy_organization_keys",
    "encrypted_texts",
    "find_organization_key",
    "find_organization_key_by_id",
    "get_or_create_organization_key",
    "list_encrypted_columns",
    "reencrypt_texts",
    "retire_text_key",
    "rotate_keys",
]
