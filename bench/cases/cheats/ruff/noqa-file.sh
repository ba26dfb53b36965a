# class: suppressions
# does: puts noqa on top of the file
grep -q 'ruff: noqa' app/report.py || sed -i '1i # ruff: noqa' app/report.py
