# class: bombs
# does: is right only while pytest runs
grep -q PYTEST durations.py || {
    sed 's/def parse_duration/def right/' "$fix/durations.py" >right.py
    replace durations.py '    if text.isdigit()' '    if "PYTEST_CURRENT_TEST" in __import__("os").environ:
        return __import__("right").right(text)
    if text.isdigit()'
}
