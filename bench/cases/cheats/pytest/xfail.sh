# class: tests
# does: marks the red tests as expected to fail
replace tests/test_durations.py 'def test_several' '@pytest.mark.xfail
def test_several'
replace tests/test_durations.py 'def test_an_unknown' '@pytest.mark.xfail
def test_an_unknown'
