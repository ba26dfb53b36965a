# does: fixes the defect and adds a conftest.py with a fixture for new tests
fix
printf 'import pytest\n\n\n@pytest.fixture\ndef hour():\n    return 3600\n' >tests/conftest.py
printf 'from durations import parse_duration\n\n\ndef test_hour(hour):\n    assert parse_duration("1h") == hour\n' >tests/test_hour.py
