"""A Google Cloud service account as a setting, and its tokens.

The account signs tokens itself, without a request (https://google.aip.dev/auth/4111).
"""

from typing import Annotated

from google.auth import jwt
from google.auth.exceptions import GoogleAuthError
from pydantic import AfterValidator, Field, SecretStr
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.google_cloud import read_service_account


def _require_key_file(file: SecretStr) -> SecretStr:
    read_service_account(file)
    return file


KeyFile = Annotated[
    SecretStr,
    AfterValidator(_require_key_file),
    Field(description="The JSON file of a service account's key, in a project with the API enabled."),
]


class AccountTokens:
    """Tokens for one service, `audience` (https://speech.googleapis.com/), signed with a key file."""

    def __init__(self, title: str, file: SecretStr, audience: str) -> None:
        self._title = title
        self._file = file
        self._audience = audience
        self._credentials: jwt.Credentials | None = None

    def build_headers(self) -> dict[str, str]:
        """Return the header with a token, which is renewed when it has expired. Raises `ProviderError`."""
        headers: dict[str, str] = {}
        try:
            if self._credentials is None:
                account = read_service_account(self._file).model_dump()
                self._credentials = jwt.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
                    {**account, "token_uri": self._audience}, audience=self._audience
                )
            self._credentials.before_request(None, "POST", self._audience, headers)
        except (GoogleAuthError, ValueError) as error:
            reason = f"{self._title}: the key of the service account is invalid ({error})"
            raise ProviderError(reason, retryable=False) from error
        return headers
