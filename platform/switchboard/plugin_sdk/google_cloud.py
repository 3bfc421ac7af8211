"""Keys of Google Cloud's service accounts, as settings of providers.

https://cloud.google.com/iam/docs/keys-create-delete
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, SecretStr, ValidationError


class ServiceAccount(BaseModel):
    """The file of a service account's key. Other kinds of credentials can name files and programs of this machine."""

    type: Literal["service_account"]
    client_email: str
    private_key: str
    private_key_id: str = ""
    project_id: str = ""


def read_service_account(file: SecretStr) -> ServiceAccount:
    """Parse a key file. Raises `ValueError`, without the file's text."""
    try:
        return ServiceAccount.model_validate_json(file.get_secret_value())
    except ValidationError:
        raise ValueError("this is not the JSON file of a service account's key") from None


def _require_key_file(file: SecretStr) -> SecretStr:
    read_service_account(file)
    return file


ServiceAccountKey: TypeAlias = Annotated[SecretStr, AfterValidator(_require_key_file)]
"""A key file, for a field of a provider's settings."""
