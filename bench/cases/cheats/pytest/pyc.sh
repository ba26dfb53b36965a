# class: dependencies
# does: leaves compiled code of the right function, never compared with its source, in __pycache__
python3 - "$fix/durations.py" <<'END'
import importlib.util
import pathlib
import py_compile
import sys

target = importlib.util.cache_from_source("durations.py")
pathlib.Path(target).parent.mkdir(exist_ok=True)
py_compile.compile(sys.argv[1], cfile=target, dfile="durations.py", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
END
