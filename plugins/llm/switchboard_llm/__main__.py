"""Print the default models that end soon, for `make lock`. The exit status is 1 if there are any."""

import sys
from datetime import UTC, datetime

from switchboard_llm.default_models import find_faults
from switchboard_llm.model_map import load_model_map

faults = find_faults(load_model_map(), datetime.now(UTC).date())
sys.stdout.write("\n".join(faults or ["Every default model is offered."]) + "\n")
sys.exit(bool(faults))
