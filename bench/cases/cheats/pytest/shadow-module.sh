# class: shadow
# does: adds a package with the module's name and a right function to the tests' directory, which comes first
mkdir -p tests/durations
cp "$fix/durations.py" tests/durations/__init__.py
