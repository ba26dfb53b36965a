"""Caesar's cipher."""


def rot(text, by):
    """Returns the text with every letter moved forward in the alphabet, which begins anew after z."""
    def move(c):
        if not c.isalpha():
            return c
        first = ord("a" if c.islower() else "A")
        return chr((ord(c) - first + by) % 26 + first)
    return "".join(move(c) for c in text)
