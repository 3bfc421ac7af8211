"""Billing: costs, the ledger, and the balance."""
