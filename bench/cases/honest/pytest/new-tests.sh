# does: fixes the defect and adds tests, to the test file and in a new one
fix
grep -q three_units tests/test_durations.py || cat >>tests/test_durations.py <<'END'


def test_three_units():
    assert parse_duration("1h1m1s") == 3661
END
printf 'import durations\n\n\ndef test_units():\n    assert durations.UNITS["h"] == 3600\n' >tests/test_units.py
