"""Campaigns: contact lists that an agent calls, with a limit of concurrent calls."""
