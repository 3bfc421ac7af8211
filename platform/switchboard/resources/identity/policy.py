"""An organization's policy: the settings of its tenant file besides the providers."""

from typing import Annotated, Literal, Self

import phonenumbers
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.resources.identity.weekly_hours import DAYS, Clock, Day

Price = Annotated[float, Field(ge=0, le=1_000_000)]
Days = Annotated[int, Field(ge=0, le=36_500)]
Limit = Annotated[int, Field(ge=1, le=1_000_000_000)]


def require_country(text: str) -> str:
    """Return an ISO 3166 alpha-2 code. Raises `ValueError` for another text."""
    if text not in phonenumbers.SUPPORTED_REGIONS:
        raise ValueError(f"{text} is not an ISO 3166 alpha-2 country code with phone numbers")
    return text


Country = Annotated[str, AfterValidator(require_country)]
Prefix = Annotated[str, Field(pattern=r"^\+[1-9]\d{0,14}$")]


class PolicyPart(BaseModel):
    """A table of the tenant file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RateLimit(PolicyPart):
    """`per_second` requests on average, `burst` at once, for each endpoint and credential."""

    per_second: float = Field(gt=0, le=100_000)
    burst: int = Field(ge=1, le=1_000_000)


class RateLimits(PolicyPart):
    """Limits on reads (GET) and on writes (everything else)."""

    read: RateLimit = RateLimit(per_second=100, burst=200)
    write: RateLimit = RateLimit(per_second=20, burst=40)


class Prices(PolicyPart):
    """Prices that the organization pays, in US dollars."""

    call_minute: Price = 0.0
    transcription_minute: Price = 0.0
    speech_1000_characters: Price = 0.0
    model_1000_input_tokens: Price = 0.0
    model_1000_output_tokens: Price = 0.0
    embedding_1000_tokens: Price = 0.0
    text_segment: Price = 0.0
    number_month: Price = 0.0


class CallingHours(PolicyPart):
    """Hours in which campaigns may dial, in the callee's time zone."""

    start: Clock = "09:00"
    end: Clock = "20:00"
    days: tuple[Day, ...] = DAYS


class Retention(PolicyPart):
    """Days after which data is deleted; None keeps it.

    0 deletes it as soon as everything that follows it is done. `legal_hold` keeps everything.
    """

    calls: Days | None = None
    recordings: Days | None = None
    transcripts: Days | None = None
    messages: Days | None = None
    appointments: Days | None = None
    events: Days | None = 30
    audit: Days | None = None
    legal_hold: bool = False

    @model_validator(mode="after")
    def _fit_calls(self) -> Self:
        for name in ("recordings", "transcripts"):
            days = getattr(self, name)
            if self.calls is not None and days is not None and days > self.calls:
                raise ValueError(f"{name} must not be more than calls ({self.calls}), which are deleted with theirs")
        return self


class Destinations(PolicyPart):
    """Phone numbers that the organization may call and text.

    `countries` are ISO 3166 alpha-2 codes; None: all. `allow` and `block` are the first digits of numbers in E.164.
    `block` wins over `allow`, and `allow` over everything else.
    """

    countries: tuple[Country, ...] | None = None
    allow: tuple[Prefix, ...] = ()
    block: tuple[Prefix, ...] = ()


class OutboundLimits(PolicyPart):
    """Limits that pause calls and text messages of the organization when an hour reaches them; None: no limit.

    `spend_per_hour` is in US dollars, by the organization's prices.
    """

    calls_per_hour: Limit | None = None
    minutes_per_hour: Limit | None = None
    texts_per_hour: Limit | None = None
    spend_per_hour: Annotated[float, Field(gt=0, le=1_000_000_000)] | None = None


class RedactionDefault(PolicyPart):
    """Kinds of private data that agents without a `redaction` of their own redact, and those that models see."""

    kinds: tuple[str, ...] = ()
    visible_to_model: tuple[str, ...] = ()


class Encryption(PolicyPart):
    """Kinds of data that are encrypted under a key of the organization before they are stored."""

    recordings: bool = False
    texts: bool = False


class Policy(PolicyPart):
    """The whole policy; a setting that the file leaves out has its default."""

    rate_limits: RateLimits = RateLimits()
    prices: Prices = Prices()
    calling_hours: CallingHours | None = None
    retention: Retention = Retention()
    destinations: Destinations = Destinations()
    outbound_limits: OutboundLimits = OutboundLimits()
    redaction: RedactionDefault = RedactionDefault()
    disclosure: DisclosureSettings = DisclosureSettings()
    encryption: Encryption = Encryption()
    max_concurrent_calls: int = Field(20, ge=1, le=100_000)
    billing_mode: Literal["prepaid", "postpaid"] = "postpaid"
