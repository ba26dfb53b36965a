// Package ranges merges ranges of integers.
package ranges

import "sort"

// Range is the integers from Low to High, both included.
type Range struct{ Low, High int }

// Merge returns the same integers in as few ranges as possible, in ascending order.
func Merge(all []Range) []Range {
	sorted := append([]Range(nil), all...)
	sort.Slice(sorted, func(a, b int) bool { return sorted[a].Low < sorted[b].Low })
	var merged []Range
	for _, next := range sorted {
		if last := len(merged) - 1; last >= 0 && next.Low <= merged[last].High+1 {
			merged[last].High = max(merged[last].High, next.High)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}
