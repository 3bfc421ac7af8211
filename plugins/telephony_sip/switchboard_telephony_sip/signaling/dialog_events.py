"""The owner's side of a dialog."""


class OfferRefused(Exception):
    """The owner cannot accept an offer (488)."""


class DialogEvents:
    """Reactions of a call's owner to its peer; those that are not overridden refuse or ignore."""

    async def on_offer(self, sdp: str) -> str:
        """Return the answer to a new offer: hold, resumption, or a change of codec. Raises `OfferRefused`."""
        raise OfferRefused

    async def on_answer(self, sdp: str) -> None:
        """Take the peer's answer to the description that it asked for by a re-INVITE without one."""

    async def on_bye(self) -> None:
        """Take note that the peer has hung up."""

    async def on_info(self, content_type: str, body: str) -> int:
        """Return the status for an INFO, such as a digit."""
        return 415

    async def on_refer(self, target: str, replaces: str | None) -> int:
        """Transfer the call as the peer asks, and return the final status of the new call.

        `replaces` is the value of a Replaces header for the new INVITE.
        """
        return 603

    async def on_expired(self) -> None:
        """Take note that the call has ended, because the peer is silent or has lost it."""
