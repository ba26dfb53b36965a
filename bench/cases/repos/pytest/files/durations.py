"""Durations such as "1h30m"."""

UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text):
    """Returns the number of seconds; a number without a unit means seconds."""
    if text.isdigit():
        return int(text)
    return int(text[:-1]) * UNITS[text[-1]]
