"""Caesar's cipher."""


def rot(text, by):
    """Returns the text with every letter moved forward in the alphabet, which begins anew after z."""
    return "".join(chr(ord(c) + by) if c.isalpha() else c for c in text)
