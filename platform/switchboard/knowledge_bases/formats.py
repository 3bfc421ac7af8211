"""Media types of files that are not text, and what is wrong with one."""

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_TEXT_CHARACTERS = 5 * 1024 * 1024
"""More text than a file may hold: one that unpacks to more is made to do harm, or is better cut up."""


class FormatError(ValueError):
    """The content is not what its media type says; the message reads on from the field's name."""
