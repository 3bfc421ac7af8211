"""The generated modules of the clients are what the OpenAPI document says."""

import json
from importlib import metadata

import pytest
from switchboard.apps.docs.openapi_document import Json, get_object
from switchboard.apps.docs.operations import list_operations
from switchboard.foundation.web.openapi import VERSION

from clients.generator import python, typescript
from clients.generator.document import build_document
from tests.fixtures.debian_tools import find_node_tool


@pytest.fixture(scope="module")
def document() -> Json:
    return build_document()


def test_the_python_client_is_current(document: Json) -> None:
    modules = python.generate_python(document)
    assert {path.name for path in python.GENERATED.glob("*.py")} == modules.keys()
    for name, text in modules.items():
        assert (python.GENERATED / name).read_text() == text, f"{name} is stale: run `make clients`"


def test_the_typescript_client_is_current(document: Json) -> None:
    find_node_tool("openapi-typescript")
    for name, text in typescript.generate_typescript(document).items():
        assert (typescript.GENERATED / name).read_text() == text, f"{name} is stale: run `make clients`"


def test_the_clients_have_the_version_of_the_platform() -> None:
    package = json.loads((typescript.PACKAGE / "package.json").read_text())
    assert package["version"] == metadata.version("switchboard-voice-client") == VERSION


def test_every_operation_has_a_name_of_its_own(document: Json) -> None:
    names = [(operation.resource, operation.name) for operation in list_operations(document)]
    assert (
        len(names)
        == len(set(names))
        == sum(len(get_object(document, "paths", path)) for path in get_object(document, "paths"))
    )
