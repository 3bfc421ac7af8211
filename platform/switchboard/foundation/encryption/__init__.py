"""Encryption at rest: values under the keyring and their rotation, keys of organizations, and content under them."""
