"""The calls of a user agent, by the identifiers with which their peers name them."""

from switchboard_telephony_sip.signaling.dialog_state import DialogKey
from switchboard_telephony_sip.signaling.dialogs import Dialog


class DialogTable:
    """Established calls; one that ends is removed."""

    def __init__(self) -> None:
        self._dialogs: dict[DialogKey, Dialog] = {}

    def add(self, dialog: Dialog) -> None:
        key = dialog.state.key
        self._dialogs[key] = dialog
        dialog.on_end(lambda: self._remove(key))

    def _remove(self, key: DialogKey) -> None:
        self._dialogs.pop(key, None)

    def find(self, key: DialogKey) -> Dialog | None:
        """Return the call with this Call-ID, local tag, and remote tag."""
        return self._dialogs.get(key)

    def list_dialogs(self) -> list[Dialog]:
        return list(self._dialogs.values())
