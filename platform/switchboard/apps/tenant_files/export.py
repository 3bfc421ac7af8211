"""An organization's settings as a tenant file, which refers to secrets by names of environment variables."""

import re
from collections.abc import Mapping
from typing import Any

import tomli_w
from pydantic import JsonValue

from switchboard.apps.tenant_files.phone_numbers import KEY, export_numbers
from switchboard.engine.providers.configuration import decrypt_secrets
from switchboard.engine.providers.editing import list_providers
from switchboard.engine.providers.models import OWN_PROCESS, ProviderConfiguration
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import CAPABILITIES, Capability, Registry
from switchboard.resources.identity.models import Organization


async def export_tenant_file(session: WriteSession, registry: Registry, keyring: KeyRing) -> str:
    """Return the organization's tenant file as TOML, and record that in the audit log.

    Settings that have their default, and secrets that the platform generates, are left out. A comment at the top names
    the environment variables that must hold the secrets before the file is applied.
    """
    organization = await session.get_one(Organization, session.organization_id)
    content: dict[str, Any] = {"name": organization.name, "timezone": organization.timezone}
    content |= organization.policy.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    secrets = _SecretReferences()
    places = list(CAPABILITIES)
    for row in sorted(await list_providers(session), key=lambda row: places.index(row.capability)):
        capability = CAPABILITIES[row.capability]
        kind = registry.find_class(capability, row.name)
        generated = kind.initial_settings() if kind else {}
        kept = {name: value for name, value in decrypt_secrets(keyring, row).items() if name not in generated}
        table = secrets.build_table(row, kept)
        if isinstance(capability, Capability):
            content.setdefault(row.capability, []).append(table)
        else:
            del table["provider"]
            content.setdefault(row.capability, {})[row.name] = table
    if numbers := await export_numbers(session, registry):
        content[KEY] = numbers
    record_audit(session, AuditAction.TENANT_FILE_EXPORTED, organization.id)
    return secrets.describe() + tomli_w.dumps(content)


class _SecretReferences:
    """References to secrets, under names of environment variables that differ for different values."""

    def __init__(self) -> None:
        self._values: JsonObject = {}

    def build_table(self, row: ProviderConfiguration, secrets: Mapping[str, JsonValue]) -> JsonObject:
        table: JsonObject = {"provider": row.name}
        if row.process == OWN_PROCESS:
            table["process"] = OWN_PROCESS
        table |= {name: value for name, value in row.settings.items() if value is not None}
        return table | {
            name: self._refer(row, name, value) for name, value in secrets.items() if value not in (None, "")
        }

    def _refer(self, row: ProviderConfiguration, place: str, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {name: self._refer(row, f"{place}_{name}", item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._refer(row, f"{place}_{number}", item) for number, item in enumerate(value, 1)]
        name = _make_variable_name(row.name, place)
        if self._values.setdefault(name, value) != value:
            name = _make_variable_name(row.capability, row.name, place)
            self._values[name] = value
        return {"env": name}

    def describe(self) -> str:
        names = "".join(f"# {name}\n" for name in self._values)
        return f"# Secrets are not exported. Set these variables before you apply the file:\n{names}\n" if names else ""


def _make_variable_name(*parts: str) -> str:
    return re.sub(r"\W+", "_", "_".join(parts)).upper()
