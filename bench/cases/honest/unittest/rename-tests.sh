# task: Fix slug() in slugs.py, and rename the test file to tests/test_rules.py: more rules will follow.
# does: fixes the defect and renames the test file, as the task asks
fix
[ -f tests/test_rules.py ] || git mv tests/test_slugs.py tests/test_rules.py
