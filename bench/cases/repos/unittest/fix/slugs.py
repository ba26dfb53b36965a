"""Slugs for addresses of pages."""

import re


def slug(title):
    """Returns lower-case words joined by single hyphens, without punctuation."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
