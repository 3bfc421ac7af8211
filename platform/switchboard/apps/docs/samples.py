"""Samples of each operation in curl, Python, and TypeScript, with the examples of the OpenAPI document.

The Python and TypeScript samples use the clients of `clients/`, whose generator reads the same `Operation`s.
"""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode

from pydantic import JsonValue

from switchboard.apps.docs.openapi_document import Json, get_object, list_objects
from switchboard.apps.docs.operations import Operation

LANGUAGES = {"curl": "curl", "python": "Python", "typescript": "TypeScript"}
EXAMPLE_ID = "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"
SHOWN_FILTERS = ("format", "limit", "status")
"""Optional query parameters that a sample has."""
EXAMPLES: Json = {"limit": 20, "status": "completed"}
EXTENSIONS = {"audio/wav": "wav", "text/csv": "csv", "application/octet-stream": "bin"}
PYTHON_WORDS = {None: "None", True: "True", False: "False"}
MAX_LINE = 88


def build_example_body(document: Json, operation: Operation) -> Json | None:
    """Return the example of the schema of an operation's body; None for an operation without a body."""
    if operation.body is None:
        return None
    examples = get_object(document, "components", "schemas", operation.body)["examples"]
    return get_object(examples[0]) if isinstance(examples, list) else None


def _find_value(name: str, schema: Json) -> JsonValue:
    parts = list_objects(schema, "anyOf")
    values = schema.get("enum") or next((part["enum"] for part in parts if "enum" in part), None)
    if isinstance(values, list):
        return EXAMPLES[name] if EXAMPLES.get(name) in values else values[0]
    return EXAMPLES.get(name, EXAMPLE_ID)


def write_samples(document: Json, operation: Operation, base_url: str) -> dict[str, str]:
    """Return the samples of an operation by language, those of `LANGUAGES`."""
    shown = {name for name in operation.query if name in operation.required_query or name in SHOWN_FILTERS}
    query = {name: _find_value(name, get_object(part)) for name, part in operation.query.items() if name in shown}
    body = build_example_body(document, operation)
    given = query if body is None else body
    return {
        "curl": _write_curl(operation, query, body, base_url),
        "python": _write_python(operation, given, base_url),
        "typescript": _write_typescript(operation, given, base_url),
    }


def _name_file(operation: Operation) -> str:
    types = get_object(operation.answer, "content")
    extension = next((EXTENSIONS[kind] for kind in types if kind in EXTENSIONS), "bin")
    return f"{operation.operation_id.split('_', 1)[1].replace('_', '-')}.{extension}"


def _write_curl(operation: Operation, query: Json, body: Json | None, base_url: str) -> str:
    path = re.sub(r"{\w+}", EXAMPLE_ID, operation.path)
    lines = [f'curl "{base_url}{path}{"?" if query else ""}{urlencode(query)}"']
    if operation.method != "GET":
        lines[0] = f"curl -X {operation.method}{lines[0].removeprefix('curl')}"
    lines.append('  -H "Authorization: Bearer $API_KEY"')
    if body is not None:
        text = json.dumps(body, indent=2, ensure_ascii=False).replace("'", "'\\''")
        lines += ['  -H "Content-Type: application/json"', f"  -d '{text}'"]
    if operation.result_kind == "bytes":
        lines.append(f"  -o {_name_file(operation)}")
    return " \\\n".join(lines)


def _write_python(operation: Operation, given: Json, base_url: str) -> str:
    arguments = [json.dumps(EXAMPLE_ID)] * len(operation.path_parameters)
    arguments += [f"{name}={write_python_value(value)}" for name, value in given.items()]
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
            *_use_in_python(operation, call),
        ]
    )


def _use_in_python(operation: Operation, call: str) -> Iterator[str]:
    name = _name_result(operation)
    if operation.result_kind in ("page", "list"):
        yield from (f"for {name} in {call}:", f"    print({name})")
    elif operation.result_kind == "model":
        yield from (f"{name} = {call}", f"print({name})")
    elif operation.result_kind == "bytes":
        yield f'Path("{_name_file(operation)}").write_bytes({call})'
    else:
        yield call


def _write_typescript(operation: Operation, given: Json, base_url: str) -> str:
    arguments = [json.dumps(EXAMPLE_ID)] * len(operation.path_parameters)
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
            *_use_in_typescript(operation, call),
        ]
    )


def _use_in_typescript(operation: Operation, call: str) -> Iterator[str]:
    name = _camel(_name_result(operation))
    if operation.result_kind in ("page", "list"):
        head = "for await" if operation.result_kind == "page" else "for"
        yield from (f"{head} (const {name} of await {call}) {{", f"  console.log({name});", "}")
    elif operation.result_kind == "model":
        yield from (f"const {name} = await {call};", f"console.log({name});")
    elif operation.result_kind == "bytes":
        yield f'await writeFile("{_name_file(operation)}", new Uint8Array(await {call}));'
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
