"""Contract suites: one pytest class for each capability, which a plugin's own tests subclass. See docs/plugins/testing.md."""

from switchboard.plugins.testing.contract import ProviderContract
from switchboard.plugins.testing.telephony import CarrierSamples, TelephonyContract

__all__ = ["CarrierSamples", "ProviderContract", "TelephonyContract"]
