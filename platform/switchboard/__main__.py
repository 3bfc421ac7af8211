"""`python -m switchboard`."""

from switchboard.apps.cli import main

if __name__ == "__main__":
    main()
