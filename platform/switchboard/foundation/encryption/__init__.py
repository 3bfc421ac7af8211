"""Encryption at rest: values under the keyring and their rotation, keys of organizations, and content under them."""

from switchboard.foundation.encryption.content import (
    DataKey,
    EncryptedColumn,
    OrganizationKey,
    destroy_organization_keys,
    encrypted_content,
    find_organization_key,
    find_organization_key_by_id,
    get_or_create_organization_key,
    list_encrypted_columns,
)
from switchboard.foundation.encryption.reencryption import (
    TableReencryption,
    delete_unused_content_keys,
    reencrypt_content,
    retire_content_key,
)
from switchboard.foundation.encryption.rotation import ColumnRotation, rotate_keys
from switchboard.foundation.encryption.system_queries import KeyCheck, count_values_by_key

__all__ = [
    "ColumnRotation",
    "DataKey",
    "EncryptedColumn",
    "KeyCheck",
    "OrganizationKey",
    "TableReencryption",
    "count_values_by_key",
    "delete_unused_content_keys",
    "destroy_organization_keys",
    "encrypted_content",
    "find_organization_key",
    "find_organization_key_by_id",
    "get_or_create_organization_key",
    "list_encrypted_columns",
    "reencrypt_content",
    "retire_content_key",
    "rotate_keys",
]
