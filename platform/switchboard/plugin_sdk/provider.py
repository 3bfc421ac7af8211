"""What every provider has, whatever its capability."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

OPERATOR_ONLY: Final[dict[str, JsonValue]] = {"operator_only": True}
"""`json_schema_extra` of a setting that says where requests or files go. Only whoever runs the installation sets it, in a tenant file or as a
superadmin: an owner of an organization could reach with it what only this machine can reach. Settings whose type is a URL count as such anyway."""


class ProviderSettings(BaseModel):
    """A provider's settings, as an operator writes them in a tenant file. Secrets are `SecretStr`: encrypted at rest, never shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ProviderError(Exception):
    """A provider refused or failed; `message` is the provider's own and reaches the API's `detail` (502 `provider_error`).

    `code` is the provider's own error code. `retryable` says that the same request may succeed later, or with the next provider in the
    organization's list.
    """

    def __init__(self, message: str, *, code: str | None = None, retryable: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable


class OutcomeUnknown(ProviderError):
    """The provider may have done what was asked for and never said so: neither it nor another provider may be asked again.

    Only for what must not happen twice, a call or a text; `retryable` means nothing here.
    """


SettingsT_co = TypeVar("SettingsT_co", bound=ProviderSettings, covariant=True)


class Provider(ABC, Generic[SettingsT_co]):
    """A provider of one capability. One instance serves one organization and all of its calls at once.

    `name` is what the API and the tenant file say (`llm_provider = "openai"`), unique within its capability; `title` is for people.
    Making an instance must be cheap and touch nothing outside; `open()` connects, `close()` lets go. An instance is replaced, never
    changed, when its settings change.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    Settings: ClassVar[type[ProviderSettings]] = ProviderSettings
    data_dir: Path = Path(".switchboard")
    """A folder of this machine for what must outlive the process. The platform sets it to DATA_DIR before `open()`."""

    def __init__(self, settings: SettingsT_co) -> None:
        self.settings = settings

    @classmethod
    def initial_settings(cls) -> dict[str, str]:
        """Settings made up once, when an organization first gets this provider: secrets that are ours and not the vendor's."""
        return {}

    async def open(self) -> None:
        """Get ready to serve. Called once, before anything else.

        Raises `ProviderError` where the provider cannot serve at all.
        """

    async def close(self) -> None:
        """Let go of everything. Called once; nothing is called after it."""

    @abstractmethod
    async def check(self) -> None:
        """See whether the settings work (that the credential is accepted, say) without spending money.

        Raises `ProviderError` with a message that an operator can act on. Used by `switchboard doctor`, `tenants check` and the dashboard.
        """
