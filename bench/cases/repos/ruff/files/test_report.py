import unittest

from app import report


class Report(unittest.TestCase):
    def test_read(self):
        self.assertEqual(report.read("7"), 7)
        self.assertIsNone(report.read("x"))

    def test_add(self):
        self.assertEqual(report.add("b", ["a"]), ["a", "b"])
