"""Slugs for addresses of pages."""


def slug(title):
    """Returns lower-case words joined by single hyphens, without punctuation."""
    return title.lower().replace(" ", "-")
