"""Secrets that were typed into a form that was refused.

A page never contains a secret, so the field of one is empty when its form is shown again. The typed secret is beside it
in a hidden field, encrypted, and is used if the field is still empty when the form is sent again.
"""

import re
from contextlib import suppress
from typing import Final

from werkzeug.datastructures import MultiDict

from switchboard.foundation.keyring import KeyRing, SecretError

SUFFIX: Final = ":typed"
"""End of the hidden field's name."""


def encrypt_typed_secret(keyring: KeyRing, form_token: str, secret: str, name: str) -> str:
    """Encrypt the secret of a field for the hidden field beside it. `form_token` stands for the session and its
    organization.
    """
    return keyring.encrypt(secret, _get_place(form_token, name))


def restore_typed_secrets(keyring: KeyRing, form_token: str, fields: "MultiDict[str, str]") -> "MultiDict[str, str]":
    """Return a form's fields without the hidden ones, whose secrets are in the fields that were left empty.

    A hidden field that was altered, or is another form's, is ignored.
    """
    restored: MultiDict[str, str] = MultiDict(fields)
    for hidden in [name for name in fields if name.endswith(SUFFIX)]:
        name, sealed = hidden.removesuffix(SUFFIX), restored.pop(hidden)
        if not restored.get(name):
            with suppress(SecretError):
                restored[name] = keyring.decrypt(sealed, _get_place(form_token, name))
    return restored


def _get_place(form_token: str, name: str) -> str:
    """Return the place that a ciphertext is bound to. A row's number is not part of it, because rows are moved."""
    return f"form|{re.sub(r'[.][0-9]+[.]', '.', name)}|{form_token}"
