"""Python: models by datamodel-code-generator, resources by templates, both formatted by ruff."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from switchboard.apps.docs.openapi_document import Json
from switchboard.apps.docs.operations import Operation, list_events, list_operations

from clients.generator.document import build_schema_document, select_request_schemas, select_response_schemas

TEMPLATES = Path(__file__).with_name("templates")
GENERATED = Path(__file__).parents[1] / "python" / "switchboard_client" / "generated"
COMMON_OPTIONS = (
    "--input-file-type=openapi",
    "--target-python-version=3.11",
    "--enum-field-as-literal=all",
    "--use-schema-description",
    "--use-field-description",
    "--collapse-root-models",
    "--disable-timestamp",
    "--formatters=builtin",
)
MODEL_OPTIONS = (
    '--custom-file-header="""Objects of responses and events. Generated: run `make clients` instead of editing."""',
    "--output-model-type=pydantic_v2.BaseModel",
    "--base-class=switchboard_client.model.Model",
    "--type-mappings=uuid=string",
)
REQUEST_OPTIONS = (
    '--custom-file-header="""Bodies and queries of requests. Generated: run `make clients` instead of editing."""',
    "--output-model-type=typing.TypedDict",
    "--no-use-closed-typed-dict",
    "--use-generic-container-types",
)


def generate_python(document: Json) -> dict[str, str]:
    """Return the modules of `switchboard_client/generated`, by file name."""
    operations = list(list_operations(document))
    responses = select_response_schemas(document, operations)
    requests = select_request_schemas(document, operations)
    modules = {
        "models.py": _generate_models(responses, MODEL_OPTIONS),
        "requests.py": _generate_models(requests, REQUEST_OPTIONS),
        "events.py": _render("events.py.jinja", events=list_events(document)),
        "resources.py": _render("resources.py.jinja", resources=group_by_resource(operations), is_async=False),
        "async_resources.py": _render("resources.py.jinja", resources=group_by_resource(operations), is_async=True),
        "__init__.py": '"""Generated from the OpenAPI document: run `make clients` instead of editing."""\n',
    }
    return {name: _format(name, text) for name, text in modules.items()}


def group_by_resource(operations: list[Operation]) -> dict[str, list[Operation]]:
    """Return the operations of each resource."""
    resources = defaultdict(list)
    for operation in operations:
        resources[operation.resource].append(operation)
    return dict(resources)


def create_environment() -> Environment:
    """Create the environment of the templates."""
    environment = Environment(  # noqa: S701 - it renders code
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["pascal"] = lambda name: "".join(word.title() for word in name.split("_"))
    environment.filters["camel"] = lambda name: name[0] + "".join(word.title() for word in name.split("_"))[1:]
    return environment


def _render(template: str, **values: object) -> str:
    return create_environment().get_template(template).render(**values)


def _generate_models(schemas: Json, options: tuple[str, ...]) -> str:
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps(build_schema_document(schemas)))
        command = [sys.executable, "-m", "datamodel_code_generator", *COMMON_OPTIONS, *options]
        subprocess.run([*command, f"--input={source}", f"--output={target}"], check=True)  # noqa: S603 - our own options
        return target.read_text()


def _format(name: str, text: str) -> str:
    """Format a module as if it were in its place, so that ruff knows its package."""
    ruff, place = str(Path(sys.executable).with_name("ruff")), f"--stdin-filename={GENERATED / name}"
    fix = [ruff, "check", "--quiet", "--fix-only", place, "-"]
    arrange = [ruff, "format", "--quiet", "--config", "format.skip-magic-trailing-comma = true", place, "-"]
    for command in (fix, arrange):
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text
