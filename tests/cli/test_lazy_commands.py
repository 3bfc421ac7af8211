"""Commands import what they use, and all the tables if they use the database."""

import json
import subprocess
import sys

import click
from click.testing import CliRunner
from sqlmodel import SQLModel
from switchboard.apps.cli.commands import PLACES, switchboard

TABLES = (
    "import switchboard.apps.process_runtime; from sqlmodel import SQLModel; found = list(SQLModel.metadata.tables)"
)
MODULES = (
    "from switchboard.apps.cli.commands import switchboard; import sys;"
    " switchboard(['plugins', '--help'], standalone_mode=False); found = list(sys.modules)"
)


def run_python(code: str) -> set[str]:
    """Run code in a new interpreter, and return what it has found."""
    command = [sys.executable, "-c", f"{code}\nimport json; print(json.dumps(found))"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return set(json.loads(output.splitlines()[-1]))


def test_every_command_is_described() -> None:
    printed = CliRunner().invoke(switchboard, ["--help"]).output
    assert all(f"\n  {name} " in printed for name in PLACES), printed
    for name in PLACES:
        described = CliRunner().invoke(switchboard, [name, "--help"])
        assert described.exit_code == 0, described.output


def test_commands_of_another_module_belong_to_their_group() -> None:
    context = click.Context(switchboard)
    for group, names in {"plugins": {"new", "list", "install", "check"}, "keys": {"create", "rotate", "shred"}}.items():
        command = switchboard.get_command(context, group)
        assert isinstance(command, click.Group)
        assert names <= set(command.list_commands(context))
        assert all(command.get_command(context, name) for name in command.list_commands(context))


def test_a_command_imports_only_what_it_uses() -> None:
    modules = run_python(MODULES)
    assert "switchboard.apps.cli.plugins" in modules
    assert not {"sqlalchemy", "quart", "switchboard.apps.cli.backup"} & modules


def test_a_process_knows_every_table() -> None:
    assert run_python(TABLES) == set(SQLModel.metadata.tables), "a rotation of keys goes over all of them"
