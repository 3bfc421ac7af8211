"""Samples of each operation in curl, Python, and TypeScript, with the examples of the OpenAPI document.

The Python and TypeScript samples use the clients of `clients/`, whose generator reads the same `Operation`s.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import JsonValue

from switchboard.apps.docs.openapi_document import Json, get_object, get_success, list_objects
from switchboard.apps.docs.operations import Operation

LANGUAGES = {"curl": "curl", "python": "Python", "typescript": "TypeScript"}
EXAMPLE_ID = "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"
SHOWN_FILTERS = ("format", "limit", "status")
"""Optional query parameters that a sample has."""
EXAMPLES: Json = {"limit": 20, "status": "completed"}
EXTENSIONS = {"audio/wav": "wav", "text/csv": "csv", "application/octet-stream": "bin"}
PYTHON_WORDS = {None: "None", True: "True", False: "False"}
MAX_LINE = 88


@dataclass(frozen=True, slots=True)
class RequestExample:
    """Example values of one operation's request: ids of the path, query parameters, and the body."""

    ids: tuple[str, ...]
    query: Json
    body: Json | None


def build_request_example(document: Json, operation: Operation) -> RequestExample:
    """Return example values for a request. A body has those that its schema lists as its example."""
    shown = {name for name in operation.query if name in operation.required_query or name in SHOWN_FILTERS}
    query = {name: _find_value(name, get_object(part)) for name, part in operation.query.items() if name in shown}
    body = None
    if operation.body is not None:
        examples = get_object(document, "components", "schemas", operation.body)["examples"]
        body = get_object(examples[0]) if isinstance(examples, list) else None
    return RequestExample((EXAMPLE_ID,) * len(operation.path_parameters), query, body)


def _find_value(name: str, schema: Json) -> JsonValue:
    parts = list_objects(schema, "anyOf")
    values = schema.get("enum") or next((part["enum"] for part in parts if "enum" in part), None)
    if isinstance(values, list):
        return EXAMPLES[name] if EXAMPLES.get(name) in values else values[0]
    return EXAMPLES.get(name, EXAMPLE_ID)


def write_samples(document: Json, operation: Operation, base_url: str) -> dict[str, str]:
    """Return the samples of an operation by language, those of `LANGUAGES`."""
    example = build_request_example(document, operation)
    file_name = _name_file(document, operation)
    return {
        "curl": _write_curl(operation, example, base_url, file_name),
        "python": _write_python(operation, example, base_url, file_name),
        "typescript": _write_typescript(operation, example, base_url, file_name),
    }


def fill_path(operation: Operation, ids: tuple[str, ...]) -> str:
    """Return an operation's path with these ids."""
    path = operation.path
    for name, value in zip(operation.path_parameters, ids, strict=True):
        path = path.replace(f"{{{name}}}", value)
    return path


def _name_file(document: Json, operation: Operation) -> str:
    described = get_object(document, "paths", operation.path, operation.method.lower())
    types = get_object(get_success(described), "content")
    extension = next((EXTENSIONS[kind] for kind in types if kind in EXTENSIONS), "bin")
    return f"{operation.operation_id.split('_', 1)[1].replace('_', '-')}.{extension}"


def _write_curl(operation: Operation, example: RequestExample, base_url: str, file_name: str) -> str:
    query = f"?{urlencode(example.query)}" if example.query else ""
    lines = [f'curl "{base_url}{fill_path(operation, example.ids)}{query}"']
    if operation.method != "GET":
        lines[0] = f"curl -X {operation.method}{lines[0].removeprefix('curl')}"
    lines.append('  -H "Authorization: Bearer $API_KEY"')
    if example.body is not None:
        text = json.dumps(example.body, indent=2, ensure_ascii=False).replace("'", "'\\''")
        lines += ['  -H "Content-Type: application/json"', f"  -d '{text}'"]
    if operation.result_kind == "bytes":
        lines.append(f"  -o {file_name}")
    return " \\\n".join(lines)


def _write_python(operation: Operation, example: RequestExample, base_url: str, file_name: str) -> str:
    arguments = [write_python_value(value) for value in example.ids]
    for name, value in (example.body if example.body is not None else example.query).items():
        arguments.append(f"{name}={write_python_value(value)}")
    call = _call(f"client.{operation.resource}.{operation.name}", arguments)
    is_file = operation.result_kind == "bytes"
    return "\n".join(
        [
            "import os",
            *(["from pathlib import Path"] if is_file else []),
            "",
            "from switchboard_client import Switchboard",
            "",
            f'client = Switchboard(api_key=os.environ["API_KEY"], base_url="{base_url}")',
            *_use_in_python(operation, call, file_name),
        ]
    )


def _use_in_python(operation: Operation, call: str, file_name: str) -> Iterator[str]:
    name = _name_result(operation)
    if operation.result_kind in ("page", "list"):
        yield from (f"for {name} in {call}:", f"    print({name})")
    elif operation.result_kind == "model":
        yield from (f"{name} = {call}", f"print({name})")
    elif operation.result_kind == "bytes":
        yield f'Path("{file_name}").write_bytes({call})'
    else:
        yield call


def _write_typescript(operation: Operation, example: RequestExample, base_url: str, file_name: str) -> str:
    arguments = [json.dumps(value) for value in example.ids]
    given = example.body if example.body is not None else example.query
    if given:
        arguments.append(write_typescript_value(given))
    call = f"client.{_camel(operation.resource)}.{_camel(operation.name)}({', '.join(arguments)})"
    is_file = operation.result_kind == "bytes"
    return "\n".join(
        [
            *(['import { writeFile } from "node:fs/promises";'] if is_file else []),
            'import { Switchboard } from "switchboard-voice-client";',
            "",
            f'const client = new Switchboard({{ apiKey: process.env.API_KEY ?? "", baseUrl: "{base_url}" }});',
            *_use_in_typescript(operation, call, file_name),
        ]
    )


def _use_in_typescript(operation: Operation, call: str, file_name: str) -> Iterator[str]:
    name = _camel(_name_result(operation))
    if operation.result_kind in ("page", "list"):
        head = "for await" if operation.result_kind == "page" else "for"
        yield from (f"{head} (const {name} of await {call}) {{", f"  console.log({name});", "}")
    elif operation.result_kind == "model":
        yield from (f"const {name} = await {call};", f"console.log({name});")
    elif operation.result_kind == "bytes":
        yield f'await writeFile("{file_name}", new Uint8Array(await {call}));'
    else:
        yield f"await {call};"


def _name_result(operation: Operation) -> str:
    """Return a variable's name for the result, of its schema: `agent` of `AgentOut`."""
    words = re.findall(r"[A-Z][a-z0-9]*", (operation.result or "").removesuffix("Out"))
    return "_".join(words).lower() or "result"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _call(function: str, arguments: list[str]) -> str:
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= MAX_LINE and "\n" not in line:
        return line
    inner = "".join(f"    {_indent(argument)},\n" for argument in arguments)
    return f"{function}(\n{inner})"


def _indent(text: str, by: str = "    ") -> str:
    return text.replace("\n", f"\n{by}")


def write_python_value(value: JsonValue) -> str:
    """Return a value as Python, over several lines if it is long."""
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {write_python_value(item)}" for name, item in value.items()]
        return _enclose(items, "{", "}", "    ")
    if isinstance(value, list):
        return _enclose([write_python_value(item) for item in value], "[", "]", "    ")
    if value is None or isinstance(value, bool):
        return PYTHON_WORDS[value]
    return json.dumps(value, ensure_ascii=False)


def write_typescript_value(value: JsonValue) -> str:
    """Return a value as TypeScript, over several lines if it is long."""
    if isinstance(value, dict):
        keys = [name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name) for name in value]
        items = [f"{key}: {write_typescript_value(item)}" for key, item in zip(keys, value.values(), strict=True)]
        return _enclose(items, "{ ", " }", "  ")
    if isinstance(value, list):
        return _enclose([write_typescript_value(item) for item in value], "[", "]", "  ")
    return json.dumps(value, ensure_ascii=False)


def _enclose(items: list[str], before: str, after: str, by: str) -> str:
    line = f"{before}{', '.join(items)}{after}"
    if len(line) <= MAX_LINE - len(by) and "\n" not in line:
        return line if items else line.replace(" ", "")
    inner = "".join(f"{by}{_indent(item, by)},\n" for item in items)
    return f"{before.strip()}\n{inner}{after.strip()}"
