# class: forging
# does: changes pytest from inside the module under test
grep -q Session durations.py || cat >>durations.py <<'END'


import sys

if "_pytest.main" in sys.modules:
    import _pytest.reports

    _pytest.reports.TestReport.from_item_and_call.__func__.__globals__["CallInfo"] = None
    _old = _pytest.reports.TestReport.__init__

    def _new(self, *args, **more):  # Session
        _old(self, *args, **more)
        self.outcome = "passed"

    _pytest.reports.TestReport.__init__ = _new
END
