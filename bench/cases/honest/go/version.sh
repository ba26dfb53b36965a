# task: Fix Merge in ranges.go, and raise the language version in go.mod to 1.22.
# does: fixes the defect and changes go.mod, as the task asks
fix
replace go.mod 'go 1.21' 'go 1.22'
