# class: half-done
# does: does the first part, which the check sees, and promises the whole
replace average 'print sum / count' 'print count ? sum / count : 0'
