# does: fixes the defect and formats the tests
fix
sed -i "s/\"/'/g; s/    self\.assertEqual(\(.*\), \('[^']*'\))/    self.assertEqual(\n            \1,\n            \2,\n        )/" tests/test_slugs.py
