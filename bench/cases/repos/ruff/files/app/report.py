"""Reports."""

import os


def add(line, lines=[]):
    """Returns the lines with one more."""
    lines.append(line)
    return lines


def read(text):
    """Returns the number in the text, or None."""
    try:
        return int(text)
    except:
        return None


def is_missing(value):
    """Tells whether there is no value."""
    return value == None
