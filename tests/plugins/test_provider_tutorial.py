"""The lesson about a provider of one's own is carried out: from an empty folder to a call with that provider."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.fixtures.app import find_free_port
from tests.fixtures.environments import create_environment
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.tutorial import ShownCommand, WrittenFile, read_steps

PAGE = REPOSITORY / "docs" / "tutorials" / "your-own-provider.md"
VENDOR_PORT = "8099"
STARTED = {"vendor.py": "Press CTRL+C", "switchboard run": "Switchboard is ready"}
"""Commands that go on, and what they print once they are ready."""
LESSON_SECONDS = 600
PROGRAM = """
from switchboard.apps.cli import main

if __name__ == "__main__":
    main()
"""


class Terminal:
    """A shell in the reader's folder, with the environment of Switchboard activated."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        python = create_environment(folder / "environment")
        program = python.with_name("switchboard")
        program.write_text(f"#!{python}\n{PROGRAM}")
        program.chmod(0o755)
        self._variables = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # the way in which pip takes "no" for this option
            "SWITCHBOARD_PORT": str(find_free_port()),
        }

    def run(self, command: str) -> str:
        """Run a command to its end, and return what it prints."""
        words = command.split()
        if words[0] == "cd":
            self.folder /= words[1]
        elif words[0] == "export":
            name, value = command.removeprefix("export ").split("=")
            self._variables[name] = value.strip('"')
        elif words[0] != ".":
            done = subprocess.run(
                ["sh", "-c", command], cwd=self.folder, env=self._variables, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            return done.stdout
        return ""

    @contextmanager
    def start(self, command: str, sign: str) -> Iterator[str]:
        """Start a command that goes on, wait for a sign in its output, and stop it at the end."""
        process = subprocess.Popen(
            ["sh", "-c", f"exec env {command}"],
            cwd=self.folder,
            env={**self._variables, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout is not None
            printed = ""
            for line in process.stdout:
                if not line.startswith("{"):  # the log of a busy machine
                    printed += line
                if sign in line:
                    break
            else:
                pytest.fail(f"{command} ended: {printed}")
            yield printed
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.timeout(600)
def test_the_lesson_works_as_it_is_printed(tmp_path: Path) -> None:
    terminal, vendor_port, began = Terminal(tmp_path), str(find_free_port()), monotonic()
    with ExitStack() as running:
        for step in read_steps(PAGE):
            if isinstance(step, WrittenFile):
                path = terminal.folder / step.path
                path.parent.mkdir(exist_ok=True)
                path.write_text(step.text.replace(VENDOR_PORT, vendor_port))
                continue
            sign = next((sign for command, sign in STARTED.items() if step.command.endswith(command)), None)
            if sign is not None:
                printed = running.enter_context(terminal.start(step.command, sign))
            else:
                printed = terminal.run(step.command)
            shown = ShownCommand(step.command, step.output.replace(VENDOR_PORT, vendor_port))
            assert shown.matches(printed), f"$ {step.command}\n{printed}\nbut the page shows\n{shown.output}"
    assert monotonic() - began < LESSON_SECONDS
