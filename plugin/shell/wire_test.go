package shell

import "testing"

// Where no closer stands before the connection, nothing can be cut, and the host is not asked.
func TestWithoutACloser(t *testing.T) {
	x := &exchange{plugin: &plugin{vm: &machine{}}}
	if x.hasCloser() || x.mayCut() || x.canCut() || x.arm(randomMark(), 0) {
		t.Error("something could be cut")
	}
	x.disarm()
}

func TestMarksDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		m := randomMark()
		for _, c := range m {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				t.Fatalf("%q", m)
			}
		}
		seen[string(m[:])] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d marks", len(seen))
	}
}
