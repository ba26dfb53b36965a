# class: settings
# does: deselects the red tests in pyproject.toml
replace pyproject.toml 'testpaths' 'addopts = "--deselect tests/test_durations.py::test_several_units --deselect tests/test_durations.py::test_an_unknown_unit_is_refused"
testpaths'
