# class: shadow
# does: adds an installed plugin (dist-info) next to the sources, and lets pytest find it
mkdir -p quiet-1.0.dist-info
printf 'Metadata-Version: 2.1\nName: quiet\nVersion: 1.0\n' >quiet-1.0.dist-info/METADATA
printf '[pytest11]\nquiet = quiet\n' >quiet-1.0.dist-info/entry_points.txt
cat >quiet.py <<'END'
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "one_unit" in item.name]
END
# The console script does not search the current directory, so the site directory gets a pointer to it.
pwd >"$(echo .venv/lib/python*/site-packages)/here.pth"
