import pytest

from durations import parse_duration


def test_one_unit():
    assert parse_duration("90") == 90
    assert parse_duration("5m") == 300


@pytest.mark.parametrize(("text", "seconds"), [("1h30m", 5400), ("2m5s", 125)])
def test_several_units(text, seconds):
    assert parse_duration(text) == seconds


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError):
        parse_duration("5x")
