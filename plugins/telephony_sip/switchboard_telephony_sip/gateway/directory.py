"""The accounts and trunks that a gateway serves, and the trunk to which a caller belongs."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final
from uuid import UUID

import structlog
from aiosipua.headers import parse_uri
from aiosipua.message import SipRequest
from switchboard.plugin_sdk import ProviderAccount

from switchboard_telephony_sip.gateways import get_gateway_place
from switchboard_telephony_sip.media.audio_codecs import list_available_codecs
from switchboard_telephony_sip.media.session_description import MediaPreferences
from switchboard_telephony_sip.settings import SipSettings, SipTrunk
from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.digest import DigestAccount, SipCredentials
from switchboard_telephony_sip.signaling.peers import (
    DEFAULT_PORT,
    DEFAULT_TLS_PORT,
    Peer,
    PeerUnreachable,
    resolve_peer,
)
from switchboard_telephony_sip.signaling.reception import (
    Admitted,
    AuthenticationDecision,
    DigestRequired,
    UnknownCaller,
)
from switchboard_telephony_sip.signatures import derive_account_key

logger = structlog.get_logger()
REALM: Final = "switchboard"


@dataclass(slots=True)
class TrunkLine:
    """A trunk of an account. `addresses` are those of its hosts, as last resolved."""

    account: "GatewayAccount"
    trunk: SipTrunk
    quota: TrunkQuota
    peers: tuple[Peer, ...]
    addresses: frozenset[str] = frozenset()

    @property
    def domain(self) -> str:
        return self.trunk.domain or self.peers[0].host

    @property
    def credentials(self) -> SipCredentials | None:
        password = self.account.settings.find_password(self.trunk)
        return SipCredentials(self.trunk.username, password) if self.trunk.username and password else None

    @property
    def media_preferences(self) -> MediaPreferences:
        """Codecs and encryption of the trunk's calls."""
        return MediaPreferences(list_available_codecs(self.trunk.codecs), self.trunk.srtp)

    @property
    def networks(self) -> list[IPv4Network | IPv6Network]:
        """Networks from which the trunk calls: its own, and the addresses of its hosts."""
        return [ip_network(text, strict=False) for text in (*self.addresses, *self.trunk.addresses)]

    def has_host(self, host: str) -> bool:
        """Return whether the host of a URI is the trunk's, by its name or address."""
        return host in {self.domain, *(peer.host for peer in self.peers)} or bool(TrunkAddresses([self]).find(host))

    def is_called(self, request: SipRequest) -> bool:
        """Return whether a request's URI names this trunk, where several have the caller's address."""
        uri = parse_uri(request.uri)
        return (self.trunk.registers and uri.user == self.trunk.username) or uri.host == self.trunk.domain


@dataclass(slots=True)
class GatewayAccount:
    """An organization's account, with its trunks in order."""

    organization_id: UUID
    settings: SipSettings
    events_url: str
    key: str
    digest: str
    lines: list[TrunkLine] = field(default_factory=list)

    @property
    def secret(self) -> str:
        return self.settings.signing_secret.get_secret_value()


class TrunkAddresses:
    """Index of lines by their networks. The sender of every datagram is looked up: that takes a step
    for each length of prefixes, however many lines there are.
    """

    def __init__(self, lines: Iterable[TrunkLine]) -> None:
        self._lines: list[TrunkLine] = []
        self._places: dict[tuple[int, int], dict[int, list[int]]] = {}
        for place, line in enumerate(lines):
            self._lines.append(line)
            for network in line.networks:
                unused = network.max_prefixlen - network.prefixlen
                found = self._places.setdefault((network.version, unused), {})
                found.setdefault(int(network.network_address) >> unused, []).append(place)

    def find(self, host: str) -> list[TrunkLine]:
        """Return the lines that have an address, in their order."""
        try:
            address = ip_address(host)
        except ValueError:
            return []
        number, places = int(address), set[int]()
        for (version, unused), found in self._places.items():
            if version == address.version:
                places.update(found.get(number >> unused, ()))
        return [self._lines[place] for place in sorted(places)]


def build_account(account: ProviderAccount[SipSettings]) -> GatewayAccount:
    """Build an account from its configuration. The addresses of its hosts are not resolved yet."""
    settings = account.settings
    key = derive_account_key(settings.signing_secret.get_secret_value())
    built = GatewayAccount(account.organization_id, settings, account.callbacks.events, key, settings.digest)
    for trunk in settings.trunks:
        quota = TrunkQuota(f"{key}/{trunk.name}", trunk.max_calls, trunk.calls_per_second)
        built.lines.append(TrunkLine(built, trunk, quota, tuple(_read_host(host, trunk) for host in trunk.hosts)))
    return built


def _read_host(text: str, trunk: SipTrunk) -> Peer:
    bare, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        bare, port = text, str(DEFAULT_TLS_PORT if trunk.transport == "tls" else DEFAULT_PORT)
    return Peer(trunk.transport, bare.strip("[]"), int(port))


class TrunkDirectory:
    """All accounts that this gateway, at `place`, serves."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._accounts: dict[str, GatewayAccount] = {}
        self._lines: dict[str, TrunkLine] = {}
        self._users: dict[str, list[DigestAccount]] = {}
        self._addresses = TrunkAddresses([])

    def replace(self, accounts: Sequence[GatewayAccount]) -> None:
        """Serve these accounts from now on.

        An account is left out if its settings do not name this gateway, or if an earlier one has its signing secret.
        Until the hosts are resolved again, trunks have the addresses that they had.
        """
        before = self._lines
        self._accounts = {}
        for account in accounts:
            if self._place not in map(get_gateway_place, account.settings.gateways):
                continue
            if account.key in self._accounts:
                organization_id = str(account.organization_id)
                logger.error("SIP account left out: another has its signing secret", organization_id=organization_id)
                continue
            self._accounts[account.key] = account
        self._lines = {line.quota.name: line for account in self._accounts.values() for line in account.lines}
        for name, line in self._lines.items():
            if name in before and before[name].peers == line.peers:
                line.addresses = before[name].addresses
        self._users = _list_users(self.lines)
        self._addresses = TrunkAddresses(self.lines)

    @property
    def lines(self) -> list[TrunkLine]:
        return list(self._lines.values())

    def find_account(self, key: str) -> GatewayAccount | None:
        """Return the account with this key; None for an unknown one."""
        return self._accounts.get(key)

    def find_line(self, name: str) -> TrunkLine | None:
        """Return a trunk by the name of its quota; None if it is not served any more."""
        return self._lines.get(name)

    def list_registering(self) -> list[TrunkLine]:
        """List the trunks at which this gateway registers: it is the first of their account.

        Two registrations of one user would bring every call twice.
        """
        return [
            line
            for line in self.lines
            if line.trunk.registers and get_gateway_place(line.account.settings.gateways[0]) == self._place
        ]

    async def resolve_hosts(self) -> None:
        """Resolve the hosts of all trunks again. A host without an address keeps those that it had."""
        await asyncio.gather(*(self._resolve_line(line) for line in self.lines))
        self._addresses = TrunkAddresses(self.lines)

    async def _resolve_line(self, line: TrunkLine) -> None:
        found = set()
        for peer in line.peers:
            try:
                found.add((await resolve_peer(Peer("udp", peer.host, peer.port))).host)
            except PeerUnreachable as error:
                logger.warning("host of a SIP trunk has no address", trunk=line.trunk.name, reason=str(error))
        if found:
            line.addresses = frozenset(found)

    def has_address(self, host: str) -> bool:
        """Return whether an address is one of any trunk."""
        return bool(self._addresses.find(host))

    def authenticate(self, request: SipRequest, peer: Peer) -> AuthenticationDecision:
        """Return the trunks that a request may belong to, or the users who may have sent it.

        Customers of one vendor have trunks with the same addresses, some of which may ask for credentials.
        """
        here = self._addresses.find(peer.host)
        trusted = [line for line in here if not line.trunk.digest]
        owners = {line.account.key for line in trusted}
        users = _list_users([line for line in here if line.account.key not in owners])
        if not trusted or (users and "Authorization" in request.headers):
            return DigestRequired(REALM, self._users) if self._users else UnknownCaller()
        if len(trusted) > 1 and (named := [line for line in trusted if line.is_called(request)]):
            trusted, users = named, {}
        if len({line.account.key for line in trusted}) == 1:
            trusted = trusted[:1]
        return Admitted([line.quota for line in trusted], DigestRequired(REALM, users) if users else None)


def _list_users(lines: Sequence[TrunkLine]) -> dict[str, list[DigestAccount]]:
    """Return the users who may call in over these trunks, by their names.

    Of an account's trunks with the same user and password, the first counts.
    """
    found: dict[tuple[str, SipCredentials], DigestAccount] = {}
    for line in lines:
        if line.trunk.digest and (credentials := line.credentials) is not None:
            found.setdefault((line.account.key, credentials), DigestAccount(credentials.password, line.quota))
    users: dict[str, list[DigestAccount]] = {}
    for (_, credentials), account in found.items():
        users.setdefault(credentials.username, []).append(account)
    return users
