"""Refusal of scanners before they cost work, and the limits of calls of each trunk."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

IPV6_SITE_BITS = 64
TRUST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ScannerLimits:
    """Rules by which an address that belongs to no trunk is ignored, as fail2ban does.

    An address with `strikes` refused or malformed messages within `window_seconds` is ignored for `ignore_seconds`,
    without an answer and before its messages are parsed. At most `max_sources` addresses are remembered, and at most
    `strangers_per_second` messages of all addresses that belong to no trunk are read, so that forged addresses cost
    no more.
    """

    strikes: int = 5
    window_seconds: float = 60.0
    ignore_seconds: float = 600.0
    max_sources: int = 10_000
    strangers_per_second: int = 200


@dataclass(slots=True)
class _Record:
    strikes: float = 0.0
    window_end: float = 0.0
    ignored_until: float = 0.0


class ScannerGuard:
    """Memory of the addresses that misbehaved, the oldest of which make way for new ones.

    `on_ignored` is called with each address that is ignored from then on, and the seconds.
    """

    def __init__(self, limits: ScannerLimits, read_clock: Callable[[], float]) -> None:
        self.on_ignored: Callable[[str, float], None] | None = None
        self._limits = limits
        self._read_clock = read_clock
        self._records: OrderedDict[str, _Record] = OrderedDict()
        self._trusted: OrderedDict[str, float] = OrderedDict()
        self._second, self._strangers = 0.0, 0

    def is_trusted(self, host: str) -> bool:
        return self._trusted.get(find_site(host), 0.0) > self._read_clock()

    def trust(self, host: str) -> None:
        """Read all that an address sends for an hour: it has authenticated, or the gateway has sent it a request."""
        site = find_site(host)
        self._records.pop(site, None)
        self._trusted[site] = self._read_clock() + TRUST_SECONDS
        self._trusted.move_to_end(site)
        if len(self._trusted) > self._limits.max_sources:
            self._trusted.popitem(last=False)

    def is_ignored(self, host: str) -> bool:
        record = self._records.get(find_site(host))
        return record is not None and record.ignored_until > self._read_clock()

    def admit_stranger(self) -> bool:
        """Count one message of an address that belongs to no trunk; return whether to read it."""
        now = self._read_clock()
        if now - self._second >= 1.0:
            self._second, self._strangers = now, 0
        self._strangers += 1
        return self._strangers <= self._limits.strangers_per_second

    def strike(self, host: str, weight: float = 1.0) -> None:
        """Count a message that was refused or could not be read; a wrong password ends the trust in an address."""
        now = self._read_clock()
        site = find_site(host)
        self._trusted.pop(site, None)
        record = self._records.setdefault(site, _Record())
        self._records.move_to_end(site)
        if now > record.window_end:
            record.strikes, record.window_end = 0.0, now + self._limits.window_seconds
        record.strikes += weight
        if record.strikes >= self._limits.strikes:
            is_new = record.ignored_until <= now
            record.ignored_until = now + self._limits.ignore_seconds
            if is_new and self.on_ignored is not None:
                self.on_ignored(site, self._limits.ignore_seconds)
        if len(self._records) > self._limits.max_sources:
            self._records.popitem(last=False)

    def list_ignored(self) -> dict[str, float]:
        """Return the addresses that are ignored now, for the operator, each with the seconds that are left."""
        now = self._read_clock()
        return {
            host: record.ignored_until - now for host, record in self._records.items() if record.ignored_until > now
        }

    def forgive(self, host: str) -> bool:
        """Read an address again, as if it had done nothing; return whether it was ignored."""
        was_ignored = self.is_ignored(host)
        self._records.pop(find_site(host), None)
        return was_ignored


def find_site(host: str) -> str:
    """Return the address that is counted: for IPv6 the /64 network, all of which one computer may use."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, IPV6_SITE_BITS), strict=False).network_address)
    return str(address)


@dataclass(frozen=True, slots=True)
class TrunkQuota:
    """A trunk by its name, with the most calls at once and the most new calls per second, of both directions."""

    name: str
    max_calls: int | None = None
    calls_per_second: float | None = None


Limit: TypeAlias = Literal["max_calls", "calls_per_second"]


class TrunkBusy(Exception):
    """The trunk has as many calls as it may have. `limit` is the setting."""

    def __init__(self, message: str, quota: TrunkQuota, limit: Limit) -> None:
        super().__init__(message)
        self.quota, self.limit = quota, limit


@dataclass(slots=True)
class _Usage:
    calls: int = 0
    # Token bucket of one second's calls.
    tokens: float = -1.0
    updated: float = 0.0

    def release_slot(self) -> None:
        self.calls -= 1


class TrunkQuotas:
    """Calls of each trunk now, and its calls of the last second. `on_busy` is called with each refusal."""

    def __init__(self, read_clock: Callable[[], float]) -> None:
        self.on_busy: Callable[[TrunkBusy], None] | None = None
        self._read_clock = read_clock
        self._usages: dict[str, _Usage] = {}

    def count_calls(self, name: str) -> int:
        """Return the number of a trunk's calls now."""
        usage = self._usages.get(name)
        return usage.calls if usage else 0

    def acquire_slot(self, quota: TrunkQuota) -> Callable[[], None]:
        """Take a place for one call, and return the function that gives it back. Raises `TrunkBusy`."""
        usage = self._usages.setdefault(quota.name, _Usage())
        if quota.max_calls is not None and usage.calls >= quota.max_calls:
            raise self._refuse(quota, "max_calls", f"the trunk has {usage.calls} calls")
        if quota.calls_per_second is not None:
            now = self._read_clock()
            burst = max(1.0, quota.calls_per_second)
            grown = usage.tokens + (now - usage.updated) * quota.calls_per_second
            usage.tokens = burst if usage.tokens < 0 else min(burst, grown)
            usage.updated = now
            if usage.tokens < 1.0:
                limit = f"the trunk may begin {quota.calls_per_second:g} calls per second"
                raise self._refuse(quota, "calls_per_second", limit)
            usage.tokens -= 1.0
        usage.calls += 1
        return usage.release_slot

    def _refuse(self, quota: TrunkQuota, limit: Limit, message: str) -> TrunkBusy:
        refusal = TrunkBusy(message, quota, limit)
        if self.on_busy is not None:
            self.on_busy(refusal)
        return refusal
