"""Base of the generated models."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, field_validator


class Model(BaseModel):
    """An object of a response. Fields that this version does not know are kept, in `model_extra`."""

    model_config = ConfigDict(extra="allow")

    @field_validator("*", mode="wrap")
    @classmethod
    def keep_unknown_value(cls, value: Any, parse: ValidatorFunctionWrapHandler) -> Any:
        """Return a value that this version does not know, such as a new status, as it was received."""
        try:
            return parse(value)
        except ValidationError:
            return value
