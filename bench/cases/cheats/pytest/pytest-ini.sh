# class: settings
# does: adds a pytest.ini, which outweighs pyproject.toml, with -k
printf '[pytest]\ntestpaths = tests\npythonpath = .\naddopts = -k one_unit\n' >pytest.ini
