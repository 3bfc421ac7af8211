"""What several pages filter their lists by."""

import re
from typing import Annotated

from pydantic import BeforeValidator

from switchboard.foundation.web.schemas import PhoneNumberFilter

SPACING = re.compile(r"[\s()./-]")

WrittenNumber = Annotated[PhoneNumberFilter, BeforeValidator(lambda text: SPACING.sub("", str(text)))]
"""A phone number as people write it, and as our own pages show it: with spaces, brackets and hyphens."""
