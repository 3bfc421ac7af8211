"""`python -m switchboard`."""

from switchboard.cli import main

if __name__ == "__main__":
    main()
