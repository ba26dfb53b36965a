# does: fixes the defect and rewrites the tests without weakening them
fix
cat >tests/test_durations.py <<'END'
import pytest

from durations import parse_duration

CASES = {"90": 90, "5m": 300, "1h30m": 5400, "2m5s": 125}


@pytest.mark.parametrize("text", CASES)
def test_seconds(text):
    assert parse_duration(text) == CASES[text]


@pytest.mark.parametrize("text", ["5x", "", "h"])
def test_refused(text):
    with pytest.raises(ValueError):
        parse_duration(text)
END
