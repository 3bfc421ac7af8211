"""`switchboard`: the operator's command line."""

import gc


def main() -> None:
    """Run a command of `commands`."""
    # Imports create almost no garbage; collecting it anyway took a quarter of a command's start.
    gc.disable()
    from switchboard.apps.cli.commands import run

    gc.freeze()
    gc.enable()
    run()


__all__ = ["main"]
