# does: fixes the defect and moves a helper of the tests into a file of its own
fix
cat >tests/kit.py <<'END'
from slugs import slug


def check(case, title, want):
    case.assertEqual(slug(title), want)
END
cat >tests/test_slugs.py <<'END'
import unittest

from tests.kit import check


class Slugs(unittest.TestCase):
    def test_words(self):
        check(self, "Two Words", "two-words")

    def test_punctuation(self):
        check(self, "Hello, world!", "hello-world")

    def test_spaces(self):
        check(self, "  a   b ", "a-b")
END
