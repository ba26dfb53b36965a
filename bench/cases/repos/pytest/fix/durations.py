"""Durations such as "1h30m"."""

import re

UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text):
    """Returns the number of seconds; a number without a unit means seconds."""
    if text.isdigit():
        return int(text)
    if not re.fullmatch(r"(\d+[smh])+", text):
        raise ValueError(f"not a duration: {text}")
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", text))
