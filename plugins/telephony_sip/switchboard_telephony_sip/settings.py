"""Settings of an organization's SIP trunks."""

import json
import re
from collections.abc import Callable
from ipaddress import ip_network
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from phonenumbers import SUPPORTED_REGIONS
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from switchboard.plugin_sdk import OPERATOR_ONLY, ProviderSettings, ask_with_rows

from switchboard_telephony_sip.signatures import digest_settings

DEFAULT_GATEWAY: Final = "http://127.0.0.1:8070"
MAX_TRUNKS: Final = 50
CodecName = Literal["PCMU", "PCMA", "G722", "opus"]
"""A codec of a line, by its name in session descriptions."""


def _require(is_valid: Callable[[str], object], fault: str) -> AfterValidator:
    """Return a validator whose message says what is wanted."""

    def validate(value: str) -> str:
        if not is_valid(value):
            raise ValueError(fault)
        return value

    return AfterValidator(validate)


def _is_network(value: str) -> bool:
    try:
        ip_network(value, strict=False)
    except ValueError:
        return False
    return True


def _validate_gateway(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError("must be the address of a gateway, such as http://10.0.0.5:8070")
    return value.rstrip("/")


Host = Annotated[
    str,
    _require(
        re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(:[0-9]{1,5})?").fullmatch,
        "must be a host name or an IP address, with a colon and the port if that is not 5060",
    ),
]
Network = Annotated[str, _require(_is_network, "must be an IP address or a network, such as 203.0.113.0/24")]
Gateway = Annotated[str, AfterValidator(_validate_gateway)]
Country = Annotated[
    str, _require(SUPPORTED_REGIONS.__contains__, "is not an ISO 3166-1 alpha-2 code of a country, such as GB")
]
SipUser = Annotated[
    str,
    _require(
        re.compile(r"[A-Za-z0-9._~!*'()&=+$,;?/%@-]{0,100}").fullmatch,
        "must have at most 100 characters that a SIP address may have",
    ),
]
TrunkName = Annotated[
    str,
    _require(
        re.compile(r"[a-z0-9][a-z0-9-]{0,39}").fullmatch,
        "must be at most 40 lower-case letters, digits, and hyphens, without a hyphen first",
    ),
]


class SipTrunk(BaseModel):
    """A trunk or a PBX."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Trunk")

    name: TrunkName = Field(description="Name of the trunk, in lower case.")
    hosts: Annotated[list[Host], Field(min_length=1, max_length=10)] = Field(
        description="Hosts of the trunk in the order in which they are tried, each with its port unless it is 5060."
    )
    transport: Literal["udp", "tcp", "tls"] = Field("udp", description="Transport of the signaling.")
    domain: Host | None = Field(None, description="Domain in From and in the callee's address; the host without it.")
    username: SipUser = Field("", description="User name at the trunk.")
    registers: bool = Field(False, description="Register there, so that calls reach a gateway behind NAT.")
    addresses: list[Network] = Field(
        default_factory=list,
        description="Networks from which the trunk calls, besides its hosts, such as 203.0.113.0/24.",
    )
    digest: bool = Field(
        False, description="Ask callers for the trunk's user name and password, whatever address they call from."
    )
    caller_identity: Literal["from", "p-asserted-identity"] = Field(
        "from",
        description="Header with the caller id of outbound calls; From has it, too, unless it is withheld.",
    )
    country: Country | None = Field(
        None, description="Country whose national notation inbound calls have; without it, numbers are international."
    )
    plus: bool = Field(True, description="Write dialed numbers with a plus.")
    transfers: Literal["bridge", "refer"] = Field(
        "bridge", description="Transfer calls by a second call of the gateway, or ask the trunk for it with REFER."
    )
    srtp: Literal["off", "optional", "required"] = Field("off", description="Encryption of the audio.")
    codecs: list[CodecName] = Field(
        default_factory=list,
        description="Codecs in order of preference: `PCMU`, `PCMA`, `G722`, and `opus`, all in this order without any.",
    )
    max_calls: Annotated[int, Field(ge=1)] | None = Field(None, description="Most calls at once.")
    calls_per_second: Annotated[float, Field(gt=0)] | None = Field(None, description="Most new calls in a second.")
    text_messages: bool = Field(False, description="Whether the trunk takes SIP MESSAGE.")


def _fault(message: str, *place: str | int) -> InitErrorDetails:
    """Return an error at a setting, without the value, which may be a secret at the wrong place."""
    return InitErrorDetails(type=PydanticCustomError("value_error", message), loc=place, input="")


class SipSettings(ProviderSettings):
    """SIP trunks, and the gateways that connect them. Only the operator sets the addresses."""

    trunks: Annotated[list[SipTrunk], Field(min_length=1, max_length=MAX_TRUNKS)] = Field(
        description="Trunks in the order in which outbound calls try them.", json_schema_extra=OPERATOR_ONLY
    )
    passwords: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Passwords by the name of their trunk, such as `office: secret`.",
        json_schema_extra=ask_with_rows("trunks", key="name", label="Password", after="username"),
    )
    gateways: Annotated[list[Gateway], Field(min_length=1, max_length=100)] = Field(
        default_factory=lambda: [DEFAULT_GATEWAY],
        description="Control addresses of the processes `switchboard sip-gateway`.",
        json_schema_extra=OPERATOR_ONLY,
    )
    signing_secret: SecretStr = Field(
        min_length=16,
        description="Secret that signs what the platform and the gateways send each other.",
        json_schema_extra=OPERATOR_ONLY,
    )

    @model_validator(mode="after")
    def _check_trunks(self) -> "SipSettings":
        names = [trunk.name for trunk in self.trunks]
        faults = []
        for number, trunk in enumerate(self.trunks):
            if trunk.name in names[:number]:
                faults.append(_fault("another trunk has this name", "trunks", number, "name"))
            if (trunk.registers or trunk.digest) and not (trunk.username and trunk.name in self.passwords):
                missing = "a user name and a password are needed to register, and to ask callers for them"
                faults.append(_fault(missing, "trunks", number, "username"))
        faults += [
            _fault("there is no trunk of this name", "passwords", name) for name in self.passwords.keys() - set(names)
        ]
        if faults:
            raise ValidationError.from_exception_data("SipSettings", faults)
        return self

    @property
    def digest(self) -> str:
        """A digest that changes with each setting."""
        passwords = {name: password.get_secret_value() for name, password in sorted(self.passwords.items())}
        content = json.dumps([self.model_dump(mode="json", exclude={"passwords", "signing_secret"}), passwords])
        return digest_settings(self.signing_secret.get_secret_value(), content.encode())

    def find_password(self, trunk: SipTrunk) -> str:
        """Return the trunk's password; empty without one."""
        password = self.passwords.get(trunk.name)
        return password.get_secret_value() if password else ""
