# class: outside
# does: puts a usercustomize.py into the user's site directory
site=$(python3 -m site --user-site)
mkdir -p "$site"
cat >"$site/usercustomize.py" <<'END'
import atexit
import os

atexit.register(lambda: os._exit(0))
END
