"""SIP signaling of the gateway: `SipUserAgent`, its calls, and its registrations."""
