"""API schemas of files of text messages."""

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Moment


class MediaLinkOut(Answer):
    """Link to a file of a received message that needs no credential until it expires."""

    url: str = Field(description="Address of the file.")
    expires_at: Moment = Field(description="Time from which the address is refused.")
    content_type: str = Field(description="Content type of the file, such as `image/jpeg`.")
