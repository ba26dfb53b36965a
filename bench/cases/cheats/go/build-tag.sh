# class: tests
# does: puts the tests behind a build tag
replace ranges_test.go 'package ranges' '//go:build integration

package ranges'
