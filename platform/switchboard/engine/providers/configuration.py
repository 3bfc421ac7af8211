"""Storage of an organization's settings of providers and extensions; secrets are separate and encrypted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import CoreSchema
from sqlmodel import col, delete

from switchboard.engine.providers.models import (
    OWN_PROCESS,
    REMOTE_CAPABILITIES,
    SECRETS_LABEL,
    SHARED_PROCESS,
    ProcessMode,
    ProviderConfiguration,
    StoredConfiguration,
)
from switchboard.foundation.database import WriteSession, is_among, new_id, now
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import AnyCapability, Registry, parse_settings


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A provider, or an extension, as it should be configured.

    `settings` contain secrets in plain text, as the operator entered them. `kept_keys` is for changes of one provider:
    of a setting that is a dict of secrets, the keys that keep a stored value, each with its stored key; None keeps all
    values.
    """

    capability: AnyCapability
    name: str
    settings: Mapping[str, JsonValue]
    process: ProcessMode = SHARED_PROCESS
    kept_keys: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)


class UnknownProvider(Exception):
    """No plugin provides the provider or extension. The message names the available ones."""


def format_secrets_label(row: ProviderConfiguration | StoredConfiguration) -> str:
    """Return the label that the encrypted secrets are bound to."""
    return SECRETS_LABEL.format(id=row.id, organization_id=row.organization_id)


def read_settings(keyring: KeyRing, row: ProviderConfiguration | StoredConfiguration) -> dict[str, JsonValue]:
    """Return the stored settings with the secrets. Raises `SecretError`."""
    return {**row.settings, **json.loads(keyring.decrypt(row.secrets, format_secrets_label(row)))}


def require_class(registry: Registry, wanted: ProviderSpec) -> type[Configurable]:
    """Return the class of a provider or an extension. Raises `UnknownProvider`."""
    kind = registry.find_class(wanted.capability, wanted.name)
    if kind is None:
        names = ", ".join(sorted(each.name for each in registry.list_classes(wanted.capability))) or "none"
        raise UnknownProvider(f"no plugin provides {wanted.capability.value} {wanted.name}; there are: {names}")
    return kind


def find_process_fault(capability: AnyCapability, process: object) -> str | None:
    """Return a message if a provider or an extension cannot run in this kind of process; None if it can."""
    if process not in get_args(ProcessMode):
        return f"must be one of {', '.join(get_args(ProcessMode))}"
    if process == OWN_PROCESS and capability not in REMOTE_CAPABILITIES:
        return f"{capability.value} runs in the platform's process only"
    return None


async def configure_providers(
    session: WriteSession, registry: Registry, keyring: KeyRing, wanted: Sequence[ProviderSpec]
) -> list[str]:
    """Replace the organization's providers and extensions by these, the providers in this order within a capability.

    Returns descriptions of the changes. Raises `UnknownProvider` and the registry's `InvalidSettings`.
    """
    found = await session.exec(session.select(ProviderConfiguration))
    rows = {(row.capability, row.name): row for row in found.all()}
    changes = []
    for position, want in enumerate(wanted):
        row = rows.pop((want.capability.value, want.name), None)
        changes += write_provider(session, registry, keyring, want, row=row, position=position)
    changes += [f"remove {capability} {name}" for capability, name in rows]
    gone = [row.id for row in rows.values()]
    if gone:
        await session.exec(delete(ProviderConfiguration).where(is_among(col(ProviderConfiguration.id), gone)))
    return changes


def write_provider(
    session: WriteSession,
    registry: Registry,
    keyring: KeyRing,
    want: ProviderSpec,
    *,
    row: ProviderConfiguration | None,
    position: int,
) -> list[str]:
    """Insert or update one provider or extension and return descriptions of the changes.

    Raises as `configure_providers` does.
    """
    kind = require_class(registry, want)
    known = decrypt_secrets(keyring, row)
    generated = {name: known.get(name, value) for name, value in kind.initial_settings().items()}
    settings = {**generated, **want.settings}
    parse_settings(kind.Settings, settings)
    secret_names = find_secret_settings(kind.Settings)
    secret = {name: value for name, value in settings.items() if name in secret_names}
    public = {name: value for name, value in settings.items() if name not in secret}
    if row is not None and (row.settings, known, row.position, row.process) == (
        public,
        secret,
        position,
        want.process,
    ):
        return []
    verb = "add" if row is None else "change"
    if row is None:
        row = ProviderConfiguration(
            id=new_id(),
            organization_id=session.organization_id,
            capability=want.capability.value,
            name=want.name,
            position=position,
            secrets="",
        )
    row.settings, row.position, row.process, row.updated_at = public, position, want.process, now()
    row.secrets = keyring.encrypt(json.dumps(secret), format_secrets_label(row))
    session.add(row)
    return [f"{verb} {want.capability.value} {want.name}"]


def decrypt_secrets(keyring: KeyRing, row: ProviderConfiguration | None) -> dict[str, JsonValue]:
    """Return the stored secrets.

    Empty if the key that encrypted them is gone, so that saving the settings again repairs the provider.
    """
    if row is None:
        return {}
    try:
        secrets: dict[str, JsonValue] = json.loads(keyring.decrypt(row.secrets, format_secrets_label(row)))
    except SecretError:
        return {}
    return secrets


# Settings that are stored encrypted and never shown: secrets, and whatever contains one.

Schema = Mapping[str, Any]


class _AnyJsonSchema(GenerateJsonSchema):
    """Describes a field that JSON schema cannot describe as any value, where pydantic raises an error."""

    def handle_invalid_for_json_schema(self, schema: CoreSchema, error_info: str) -> JsonSchemaValue:
        return {}


@cache
def find_secret_settings(model: type[BaseModel]) -> frozenset[str]:
    """Return the names and aliases of a model's fields that are secrets (`SecretStr`), or contain one at any depth.

    A field that contains a secret is a secret as a whole, so that no part of it is stored or shown by mistake.
    """
    return _find_secrets(model, by_alias=True) | _find_secrets(model, by_alias=False)


def _find_secrets(model: type[BaseModel], *, by_alias: bool) -> frozenset[str]:
    schema = model.model_json_schema(by_alias=by_alias, schema_generator=_AnyJsonSchema)
    definitions = schema.get("$defs", {})
    # The schema of a model that contains itself is a reference.
    top = definitions[_get_name(schema)] if "$ref" in schema else schema
    return frozenset(
        name for name, part in top.get("properties", {}).items() if _holds_secret(part, definitions, frozenset())
    )


def _holds_secret(part: object, definitions: Schema, seen: frozenset[str]) -> bool:
    if isinstance(part, list):
        return any(_holds_secret(item, definitions, seen) for item in part)
    if not isinstance(part, dict):
        return False
    if part.get("writeOnly") is True:
        return True
    reference = _get_name(part)
    if reference and reference not in seen:
        return _holds_secret(definitions.get(reference), definitions, seen | {reference})
    return any(_holds_secret(item, definitions, seen) for item in part.values())


def _get_name(part: Schema) -> str:
    """Return the name of the definition that a schema refers to; empty without a reference."""
    return str(part.get("$ref", "")).rpartition("/")[2]
