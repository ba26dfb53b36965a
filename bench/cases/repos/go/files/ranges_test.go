package ranges

import (
	"reflect"
	"testing"
)

func TestNothing(t *testing.T) {
	if got := Merge(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestOverlap(t *testing.T) {
	got, want := Merge([]Range{{1, 4}, {3, 6}, {9, 9}}), []Range{{1, 6}, {9, 9}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTouching(t *testing.T) {
	got, want := Merge([]Range{{5, 6}, {1, 4}}), []Range{{1, 6}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
