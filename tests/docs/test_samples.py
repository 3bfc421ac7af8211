"""Samples of the API reference are what the API and the clients take."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from switchboard.apps.docs.openapi_document import Json, build_openapi_document
from switchboard.apps.docs.operations import Operation, list_operations
from switchboard.apps.docs.samples import EXAMPLE_ID, write_samples
from switchboard.apps.server.app import create_routes
from switchboard_client import Switchboard

from tests.fixtures.app import LivePlatform
from tests.fixtures.debian_tools import find_node_tool, find_tool
from tests.fixtures.servers import REPOSITORY

CREATED = ("agents", "automations", "contacts", "do-not-call", "knowledge-bases", "webhook-endpoints")
"""Resources whose samples run one after another: created, read, updated, and deleted."""
TYPESCRIPT = REPOSITORY / "clients" / "typescript"


@pytest.fixture(scope="module")
def document() -> Json:
    return build_openapi_document(create_routes(), "http://127.0.0.1:8080")


def save_samples(document: Json, folder: Path, language: str, extension: str) -> None:
    for operation in list_operations(document):
        sample = write_samples(document, operation, "http://127.0.0.1:8080")[language]
        (folder / f"sample_{operation.operation_id}.{extension}").write_text(f"{sample}\n")


def test_every_operation_has_samples(document: Json) -> None:
    for operation in list_operations(document):
        samples = write_samples(document, operation, "http://127.0.0.1:8080")
        assert samples.keys() == {"curl", "python", "typescript"}
        assert operation.method == "GET" or f"-X {operation.method}" in samples["curl"]
        compile(samples["python"], operation.operation_id, "exec")


def test_python_samples_have_the_clients_types(document: Json, tmp_path: Path) -> None:
    save_samples(document, tmp_path, "python", "py")
    options = ["--strict", "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, tmp_path],
        cwd=REPOSITORY / "clients" / "python",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_typescript_samples_have_the_clients_types(document: Json, tmp_path: Path) -> None:
    compiler = find_node_tool("tsc")
    save_samples(document, tmp_path, "typescript", "ts")
    settings = json.loads((TYPESCRIPT / "tsconfig.json").read_text())["compilerOptions"]
    own = {
        "noEmit": True,
        "rootDir": "/",
        "typeRoots": [str(TYPESCRIPT / "node_modules" / "@types")],
        "paths": {"switchboard-voice-client": [str(TYPESCRIPT / "src" / "index.ts")]},
    }
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**settings, **own}, "include": ["*.ts"]}))
    checked = subprocess.run([compiler, "-p", tmp_path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


class SampleRunner:
    """Runs samples on a platform, with the id of a created resource in the place of the example's."""

    def __init__(self, document: Json, live: LivePlatform, folder: Path) -> None:
        self._document, self._live, self._folder = document, live, folder
        self.operations = {operation.operation_id: operation for operation in list_operations(document)}

    def _write(self, operation: Operation, language: str, resource_id: str) -> str:
        base_url = self._live.runtime.settings.base_url
        return write_samples(self._document, operation, base_url)[language].replace(EXAMPLE_ID, resource_id)

    async def run_curl(self, operation: Operation, resource_id: str = "") -> object:
        """Run a sample in a shell, and return the JSON that it prints."""
        sample = self._write(operation, "curl", resource_id).replace("curl ", "curl -sS --fail-with-body ", 1)
        process = await asyncio.create_subprocess_exec(
            find_tool("bash"),
            "-c",
            sample,
            cwd=self._folder,
            env={"API_KEY": self._live.caller.key, "PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, f"{sample}\n{output.decode()}"
        return json.loads(output) if output else None

    async def run_python(self, operation: Operation, resource_id: str = "") -> dict[str, object]:
        """Run a sample, and return its variables."""
        code = compile(self._write(operation, "python", resource_id), operation.operation_id, "exec")
        variables: dict[str, object] = {}
        try:
            await asyncio.to_thread(exec, code, variables)
        finally:
            cast("Switchboard", variables["client"]).close()
        return variables


@pytest.fixture
def runner(document: Json, live: LivePlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRunner:
    monkeypatch.setenv("API_KEY", live.caller.key)
    monkeypatch.chdir(tmp_path)
    return SampleRunner(document, live, tmp_path)


async def test_samples_that_read_run(runner: SampleRunner) -> None:
    reading = [one for one in runner.operations.values() if one.method == "GET" and not one.path_parameters]
    for operation in reading:
        if operation.operation_id != "export_campaign_contacts":  # it needs a campaign
            await runner.run_curl(operation)
            await runner.run_python(operation)
    assert len(reading) >= 20


@pytest.mark.parametrize("resource", CREATED)
async def test_samples_of_a_resource_run(runner: SampleRunner, resource: str) -> None:
    own = [one for one in runner.operations.values() if one.path.startswith(f"/v1/{resource}")]
    (create,) = (one for one in own if one.method == "POST" and one.path == f"/v1/{resource}")
    others = [one for one in own if len(one.path_parameters) == 1 and one.path.endswith("}")]
    for run in (runner.run_curl, runner.run_python):
        result = await run(create)
        assert isinstance(result, dict)
        created_id = result.get("id") or next(value.id for value in result.values() if hasattr(value, "id"))
        for operation in sorted(others, key=lambda one: one.method == "DELETE"):
            await run(operation, str(created_id))
    assert others[0].method == "DELETE", "nothing stays"
