"""Settings that are stored encrypted and never shown: secrets, and whatever contains one."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import CoreSchema

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
