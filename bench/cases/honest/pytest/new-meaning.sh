# task: Fix parse_duration in durations.py. From now on, a number without a unit means minutes: change the tests too.
# ask: yes
# does: changes the meaning of a number without a unit, and the test of it, as the task asks
fix
why='The task says that a number without a unit means minutes now.'
replace durations.py 'return int(text)
' 'return int(text) * 60
'
replace durations.py 'means seconds' 'means minutes'
replace tests/test_durations.py 'parse_duration("90") == 90' 'parse_duration("90") == 5400'
