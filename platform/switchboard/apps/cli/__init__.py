"""`switchboard`: the operator's command line."""

import gc


def main() -> None:
    """Run a command; what it may be, and with which exit status it ends, says `commands`."""
    # Importing leaves next to no garbage; looking for it all the same took a quarter of a command's start.
    gc.disable()
    from switchboard.apps.cli.commands import run

    gc.freeze()
    gc.enable()
    run()


__all__ = ["main"]
