# class: half-done
# does: promises although nothing was done
:
