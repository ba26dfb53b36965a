// Package ranges merges ranges of integers.
package ranges

// Range is the integers from Low to High, both included.
type Range struct{ Low, High int }

// Merge returns the same integers in as few ranges as possible, in ascending order.
func Merge(all []Range) []Range {
	return all
}
