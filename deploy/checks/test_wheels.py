"""The wheels run without the repository, from the locked dependencies, and come out the same twice.

`make package-check` builds the wheels and runs this: it installs everything anew, so it takes a minute.
"""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.servers import REPOSITORY

DIST = REPOSITORY / "dist"
UV = REPOSITORY / ".venv" / "bin" / "uv"
WITHOUT_PLUGIN = re.compile(r"^switchboard_voice_(client|plugin_quality)-")
"""Wheels without a plugin and without texts of the dashboard."""
GPU_PACKAGES = re.compile(r"^ \+ (torch|nvidia|triton|tensorflow)\b", re.MULTILINE)


def list_wheels() -> list[Path]:
    return sorted(DIST.glob("*.whl"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with the locked dependencies and the wheels."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install: list[str | Path] = [UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", "--no-deps"]
    subprocess.run([*install, "--require-hashes", "-r", REPOSITORY / "requirements.lock"], check=True)
    subprocess.run([*install, *list_wheels()], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment without anything that leads to the repository."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SWITCHBOARD_"))}
    return {**own, "SWITCHBOARD_PORT": str(find_free_port())}


def test_the_same_commit_makes_the_same_wheels() -> None:
    def hash_wheels() -> dict[str, str]:
        return {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in list_wheels()}

    first = hash_wheels()
    for wheel in list_wheels():
        wheel.unlink()
    subprocess.run(["make", "wheels"], cwd=REPOSITORY, check=True, capture_output=True)
    assert hash_wheels() == first
    assert len(first) == len(
        ["platform", "client", *(REPOSITORY / "plugins").iterdir(), *(REPOSITORY / "tools").iterdir()]
    )


def test_each_wheel_carries_the_license() -> None:
    for wheel in list_wheels():
        with ZipFile(wheel) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
            assert archive.read(name) == (REPOSITORY / "LICENSE").read_bytes()


def test_each_wheel_carries_the_translations_of_its_texts() -> None:
    for wheel in list_wheels():
        with ZipFile(wheel) as archive:
            catalogs = [name for name in archive.namelist() if name.endswith(".po")]
        languages = sorted(re.findall(r"/translations/(\w+)/LC_MESSAGES/", " ".join(catalogs)))
        assert languages == ([] if WITHOUT_PLUGIN.search(wheel.name) else ["de", "es", "fr"]), wheel.name


def test_the_wheels_without_the_lock_need_no_gpu_package(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    resolve: list[str | Path] = [
        UV,
        "pip",
        "install",
        "--dry-run",
        "--python",
        tmp_path / "bin" / "python",
        *list_wheels(),
    ]
    plan = subprocess.run(resolve, check=True, capture_output=True, text=True).stderr
    assert " + litellm==" in plan
    assert GPU_PACKAGES.findall(plan) == []


def test_every_plugin_is_found(python: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    command: list[str | Path] = [python.with_name("switchboard"), "plugins", "list"]
    listed = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    for wheel in list_wheels():
        if WITHOUT_PLUGIN.search(wheel.name):
            continue
        assert f"({wheel.name.split('-')[0].replace('_', '-')} " in listed


@pytest.mark.system
async def test_the_wheels_answer_a_call_and_show_the_dashboard(
    python: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    switchboard = python.with_name("switchboard")
    running = await asyncio.create_subprocess_exec(switchboard, "run", cwd=tmp_path, env=environment)
    try:
        dev_file = tmp_path / ".switchboard" / "dev.json"

        async def is_ready() -> bool:
            return dev_file.exists()

        await eventually(is_ready, seconds=60)
        dial: list[str | Path] = [
            switchboard,
            "phone",
            "dial",
            "--from",
            "+15550100001",
            "--to",
            "+15550100200",
            "--json",
        ]
        line = "What are your opening hours?"
        dialing = await asyncio.create_subprocess_exec(
            *dial, "--say", line, cwd=tmp_path, env=environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await dialing.communicate()
        assert "We are open from seven to six" in output.decode()
        base_url = json.loads(dev_file.read_text())["base_url"]
        for path in ("/", "/docs", "/docs/guides/api", "/openapi.json", "/dashboard/static/css/base.css"):
            subprocess.run(["curl", "-fsSL", "-o", "/dev/null", base_url + path], check=True)
    finally:
        running.terminate()
        assert await running.wait() == 0


def test_the_bill_of_materials_has_every_locked_package() -> None:
    components = json.loads((DIST / "switchboard.cdx.json").read_text())["components"]
    locked = set(re.findall(r"^([a-z0-9._-]+)==", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE))
    assert {component["name"] for component in components} == locked
