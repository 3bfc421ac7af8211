"""A provider from outside the repository: installed with pip, found, configured in a tenant file, and used in a
call.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.command_line import Operator

pytestmark = pytest.mark.system

PYPROJECT = """[build-system]
requires = ["flit_core>=3.12,<5"]
build-backend = "flit_core.buildapi"

[project]
name = "switchboard-acme-voice"
version = "1.0"
description = "A voice that hums."

[project.entry-points."switchboard.plugins"]
acme = "switchboard_acme"

[tool.flit.module]
name = "switchboard_acme"
"""
MODULE = '''"""A voice that hums."""

import math
import struct

from switchboard.plugin_sdk import ProviderSettings, SpeechChunk, TextToSpeechProvider, Voice, hookimpl


class Hum(TextToSpeechProvider):
    name = "hum"
    title = "Hum"

    class Settings(ProviderSettings):
        pitch: int = 200

    async def check(self):
        pass

    async def synthesize(self, request):
        samples = (int(9000 * math.sin(2 * math.pi * self.settings.pitch * i / 8000)) for i in range(8000))
        yield SpeechChunk(struct.pack("<8000h", *samples))

    async def list_voices(self):
        return [Voice("hum", "Hum", "en-US")]


@hookimpl
def text_to_speech_providers():
    return [Hum]
'''
TENANT = """name = "Outside"
[[telephony]]
provider = "loopback"
[[speech_to_text]]
provider = "pocketsphinx"
[[text_to_speech]]
provider = "hum"
pitch = 300
[[llm]]
provider = "scripted"
"""


ATTEMPTS = 4


def test_an_external_plugin_serves_a_call(tmp_path: Path) -> None:
    package, target, tenants = tmp_path / "acme", tmp_path / "site", tmp_path / "tenants"
    package.mkdir()
    tenants.mkdir()
    (package / "pyproject.toml").write_text(PYPROJECT)
    (package / "switchboard_acme.py").write_text(MODULE)
    (tenants / "demo.toml").write_text(TENANT)
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*install, "--target", str(target), str(package)], check=True, capture_output=True)
    operator = Operator(
        PYTHONPATH=str(target),
        SWITCHBOARD_DATA_DIR=str(tmp_path / "data"),
        SWITCHBOARD_TENANTS_DIR=str(tenants),
        SWITCHBOARD_PORT="18095",
    )
    assert "text_to_speech hum" in str(operator.ask("plugins", "list"))
    assert not operator.ask("tenants", "check")["faults"]
    platform = subprocess.Popen(
        [sys.executable, "-m", "switchboard", "run"], env=operator.environment, stderr=subprocess.PIPE
    )
    try:
        assert platform.stderr is not None
        for line in platform.stderr:
            if b"is ready" in line:
                break
        dial = ("phone", "dial", "--from", "+15550100001", "--to", "+15550100200", "--say", "Goodbye")
        # On a busy machine the offline recognizer misses deadlines that are made for vendors, and words are lost.
        assert any(operator.ask(*dial)["first_reply_ms"] is not None for _ in range(ATTEMPTS))
    finally:
        platform.terminate()
        platform.communicate()
    assert platform.returncode == 0
