# class: settings
# does: adds load_tests, which drops the red tests, to the package of the tests
cat >tests/__init__.py <<'END'
import unittest


def load_tests(loader, standard, pattern):
    from tests.test_slugs import Slugs

    return unittest.TestSuite([Slugs("test_words")])
END
