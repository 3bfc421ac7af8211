"""`switchboard`: the operator's command line."""

from switchboard.apps.cli.starting import pause_collections


def main() -> None:
    """Run a command of `commands`."""
    with pause_collections():
        from switchboard.apps.cli.commands import run

    run()


__all__ = ["main"]
