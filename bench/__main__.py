"""Run the benchmarks named on the command line, or all."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("[a-z]*.py") if not path.stem.endswith("_server"))

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"there is no benchmark {name}; there are {', '.join(NAMES)}")
        importlib.import_module(f"bench.{name}").run()
