"""SIP signaling of the gateway: `SipUserAgent`, its calls, and its registrations."""

from switchboard_telephony_sip.signaling.admission import ScannerLimits, TrunkBusy, TrunkQuota
from switchboard_telephony_sip.signaling.dialogs import Dialog, DialogEvents, OfferRefused
from switchboard_telephony_sip.signaling.digest import DigestAccount, SipCredentials
from switchboard_telephony_sip.signaling.endpoint import TracedMessage
from switchboard_telephony_sip.signaling.incoming import CallCanceled, IncomingInvite
from switchboard_telephony_sip.signaling.outgoing import CallRedirected, CallRefused, CallTimeout, OutgoingInvite
from switchboard_telephony_sip.signaling.peers import ListenAddress, Peer, PeerUnreachable, TlsCertificate
from switchboard_telephony_sip.signaling.reception import (
    Admitted,
    AuthenticationDecision,
    DigestRequired,
    TrunkUndecided,
    UnknownCaller,
)
from switchboard_telephony_sip.signaling.registration import Registration, RegistrationAccount
from switchboard_telephony_sip.signaling.user_agent import SipUserAgent

__all__ = [
    "Admitted",
    "AuthenticationDecision",
    "CallCanceled",
    "CallRedirected",
    "CallRefused",
    "CallTimeout",
    "Dialog",
    "DialogEvents",
    "DigestAccount",
    "DigestRequired",
    "IncomingInvite",
    "ListenAddress",
    "OfferRefused",
    "OutgoingInvite",
    "Peer",
    "PeerUnreachable",
    "Registration",
    "RegistrationAccount",
    "ScannerLimits",
    "SipCredentials",
    "SipUserAgent",
    "TlsCertificate",
    "TracedMessage",
    "TrunkBusy",
    "TrunkQuota",
    "TrunkUndecided",
    "UnknownCaller",
]
