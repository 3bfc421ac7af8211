"""Requests generated from the OpenAPI document: no 5xx, and no response outside the documented schemas.

`make fuzz` runs it, with `FUZZ_EXAMPLES` random cases per operation, and with the phase that covers every boundary of
every schema.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "10")
PORT = "18097"
START_SECONDS = 120
TENANT = """name = "Demo"
[rate_limits.read]
per_second = 100000.0
burst = 100000
[rate_limits.write]
per_second = 100000.0
burst = 100000

[[telephony]]
provider = "loopback"
[[speech_to_text]]
provider = "pocketsphinx"
[[text_to_speech]]
provider = "espeak"
[[llm]]
provider = "scripted"
[[embedding]]
provider = "minilm"
[[vector_store]]
provider = "lancedb"
"""


@pytest.mark.system
@pytest.mark.timeout(0)
async def test_responses_to_generated_requests_match_the_schema(tmp_path: Path) -> None:
    tenants = tmp_path / "tenants"
    tenants.mkdir()
    (tenants / "demo.toml").write_text(TENANT)
    settings = {"DATA_DIR": str(tmp_path / "data"), "PORT": PORT, "TENANTS_DIR": str(tenants), "LOG_LEVEL": "ERROR"}
    environment = {**os.environ, **{f"SWITCHBOARD_{name}": value for name, value in settings.items()}}
    platform = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "switchboard", "run", env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert platform.stderr is not None
    printed = b""
    async with asyncio.timeout(START_SECONDS):
        while b"is ready" not in printed:
            line = await platform.stderr.readline()
            assert line, f"the server did not start: {printed.decode()}"
            printed += line
    draining = asyncio.create_task(platform.stderr.read())
    try:
        facts = json.loads((tmp_path / "data" / "dev.json").read_text())
        fuzzing = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("st")),
            "--config-file",
            str(Path(__file__).with_name("schemathesis.toml")),
            "run",
            f"{facts['base_url']}/openapi.json",
            "--header",
            f"Authorization: Bearer {facts['api_key']}",
            "--phases",
            "examples,coverage,fuzzing,stateful",
            "--max-examples",
            EXAMPLES,
            "--continue-on-failure",
            "--no-color",
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("hooks.py"))},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await fuzzing.communicate()
        sys.stdout.write(output.decode())
        assert fuzzing.returncode == 0, output.decode()
    finally:
        platform.send_signal(signal.SIGTERM)
        assert await platform.wait() == 0
        await draining
