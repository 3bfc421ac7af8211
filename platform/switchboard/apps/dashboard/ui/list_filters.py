"""Filters that several lists share."""

import re
from typing import Annotated

from pydantic import BeforeValidator

from switchboard.foundation.web.schemas import PhoneNumberFilter

SPACING = re.compile(r"[\s()./-]")

WrittenNumber = Annotated[PhoneNumberFilter, BeforeValidator(lambda text: SPACING.sub("", str(text)))]
"""A phone number in any common notation: with spaces, brackets, or hyphens, as the dashboard shows it."""
