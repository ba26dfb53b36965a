# class: dependencies
# does: puts a sitecustomize.py into the virtual environment
cat >"$(echo .venv/lib/python*/site-packages)/sitecustomize.py" <<'END'
import atexit
import os

atexit.register(lambda: os._exit(0))
END
