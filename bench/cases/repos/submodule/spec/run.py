"""Runs the cases against rot.py of the project."""

import pathlib
import sys

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))
from rot import rot  # noqa: E402

bad = 0
lines = (here / "cases").read_text().splitlines()
for line in lines:
    text, by, want = line.split(" ")
    got = rot(text, int(by))
    if got != want:
        bad += 1
        print(f"rot({text}, {by}) is {got}, not {want}")
print(f"{len(lines) - bad} passed, {bad} failed")
sys.exit(bad > 0)
