"""Media types that are read in a process of their own, and what is wrong with a content."""

HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_CONTENT_BYTES = 5 * 1024 * 1024
TOO_LARGE = "is larger than 5 MiB"
MAX_TEXT_CHARACTERS = 10 * 1024 * 1024
"""A content that becomes more text is made to do harm, or is better cut up."""
TOO_MUCH_TEXT = "becomes more than 10 million characters of text"


class FormatError(ValueError):
    """The content is not what its media type says; the message reads on from the field's name."""
