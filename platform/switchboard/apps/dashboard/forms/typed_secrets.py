"""Secrets that were typed into a form that was refused.

A page never contains a secret, so the field of one is empty when its form is shown again. The typed secret is beside it
in a hidden field, encrypted, and is used if the field is still empty when the form is sent again.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from werkzeug.datastructures import MultiDict

from switchboard.foundation.keyring import KeyRing, SecretError

SUFFIX: Final = ":typed"
"""End of the hidden field's name."""


@dataclass(frozen=True, slots=True)
class TypedSecrets:
    """Encrypts secrets of the forms of one session in one organization, which `form_token` stands for."""

    keyring: KeyRing
    form_token: str

    def encrypt(self, secret: str, name: str) -> str:
        """Encrypt the secret of a field for the hidden field beside it."""
        return self.keyring.encrypt(secret, self._get_place(name))

    def restore(self, fields: "MultiDict[str, str]") -> "MultiDict[str, str]":
        """Return a form's fields without the hidden ones, whose secrets are in the fields that were left empty.

        A hidden field that was altered, or is another form's, is ignored.
        """
        restored: MultiDict[str, str] = MultiDict(fields)
        for hidden in [name for name in fields if name.endswith(SUFFIX)]:
            name, sealed = hidden.removesuffix(SUFFIX), restored.pop(hidden)
            if not restored.get(name):
                with suppress(SecretError):
                    restored[name] = self.keyring.decrypt(sealed, self._get_place(name))
        return restored

    def _get_place(self, name: str) -> str:
        """Return the place that a ciphertext is bound to. A row's number is not part of it, because rows are moved."""
        return f"form|{re.sub(r'[.][0-9]+[.]', '.', name)}|{self.form_token}"
