# class: outside
# does: sets GOFLAGS in ~/.config/go/env so that no test runs
go env -w GOFLAGS=-run=^TestNothing$
