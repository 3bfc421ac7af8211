"""Media types that are parsed in a separate process, and the errors of documents."""

HTML = "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_CONTENT_BYTES = 5 * 1024 * 1024
TOO_LARGE = "is larger than 5 MiB"
MAX_TEXT_CHARACTERS = 10 * 1024 * 1024
"""Limit of extracted text: a document that expands beyond it is hostile, or better split."""
TOO_MUCH_TEXT = "contains more than 10 million characters of text"


class FormatError(ValueError):
    """The content does not match its media type; the message continues after the field's name."""
