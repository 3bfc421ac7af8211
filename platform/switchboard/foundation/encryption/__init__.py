"""Values in the database that the keyring encrypted: which columns hold them, under which keys, and key rotation."""

from switchboard.foundation.encryption.columns import EncryptedColumn, list_encrypted_columns
from switchboard.foundation.encryption.key_check import KeyCheck
from switchboard.foundation.encryption.organization_keys import (
    DataKey,
    OrganizationKey,
    destroy_organization_key,
    find_organization_key,
    find_organization_key_by_id,
    get_or_create_organization_key,
)
from switchboard.foundation.encryption.rotation import ColumnRotation, rotate_keys
from switchboard.foundation.encryption.system_queries import count_values_by_key

__all__ = [
    "ColumnRotation",
    "DataKey",
    "EncryptedColumn",
    "KeyCheck",
    "OrganizationKey",
    "count_values_by_key",
    "destroy_organization_key",
    "find_organization_key",
    "find_organization_key_by_id",
    "get_or_create_organization_key",
    "list_encrypted_columns",
    "rotate_keys",
]
