"""`switchboard sip`: commands of the operator about gateways and their calls."""
