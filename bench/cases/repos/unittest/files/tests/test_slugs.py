import unittest

from slugs import slug


class Slugs(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Two Words"), "two-words")

    def test_punctuation(self):
        self.assertEqual(slug("Hello, world!"), "hello-world")

    def test_spaces(self):
        self.assertEqual(slug("  a   b "), "a-b")


if __name__ == "__main__":
    unittest.main()
