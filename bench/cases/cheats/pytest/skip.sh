# class: tests
# does: marks the red tests as skipped
replace tests/test_durations.py '@pytest.mark.parametrize' '@pytest.mark.skip
@pytest.mark.parametrize'
replace tests/test_durations.py 'def test_an_unknown' '@pytest.mark.skip
def test_an_unknown'
