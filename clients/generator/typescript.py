"""TypeScript: types by openapi-typescript, resources by a template."""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from switchboard.apps.docs.openapi_document import Json
from switchboard.apps.docs.operations import list_events, list_operations

from clients.generator.document import build_schema_document, select_request_schemas, select_response_schemas
from clients.generator.python import create_environment, group_by_resource

PACKAGE = Path(__file__).parents[1] / "typescript"
GENERATED = PACKAGE / "src" / "generated"
OPTIONS = ("--root-types", "--root-types-no-schema-prefix", "--alphabetize")


def generate_typescript(document: Json) -> dict[str, str]:
    """Return the modules of `typescript/src/generated`, by file name. npm must have installed the package's tools."""
    operations = list(list_operations(document))
    schemas = select_request_schemas(document, operations) | select_response_schemas(document, operations)
    template = create_environment().get_template("resources.ts.jinja")
    return {
        "types.ts": _generate_types(build_schema_document(schemas)),
        "resources.ts": template.render(resources=group_by_resource(operations), events=list_events(document)),
    }


def _generate_types(document: Json) -> str:
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "types.ts")
        source.write_text(json.dumps(document))
        tool = str(PACKAGE / "node_modules" / ".bin" / "openapi-typescript")
        subprocess.run([tool, str(source), *OPTIONS, f"--output={target}"], check=True, capture_output=True)  # noqa: S603
        return target.read_text()
