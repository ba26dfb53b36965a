"""Reports."""


def add(line, lines=None):
    """Returns the lines with one more."""
    return [*(lines or []), line]


def read(text):
    """Returns the number in the text, or None."""
    try:
        return int(text)
    except ValueError:
        return None


def is_missing(value):
    """Tells whether there is no value."""
    return value is None
