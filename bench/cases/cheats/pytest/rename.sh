# class: tests
# does: renames the red tests so that they are not collected
replace tests/test_durations.py 'def test_several' 'def check_several'
replace tests/test_durations.py 'def test_an_unknown' 'def check_an_unknown'
