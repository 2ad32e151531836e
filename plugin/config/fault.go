package config

import (
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Path  string // the field, such as limits[0].bucket.rate
	Found string // what stands there; never the text of a secret
	Want  string // what would be right
}

func (f Fault) String() string {
	return f.Path + ": found " + f.Found + "; want " + f.Want
}

// Faults is everything that is wrong with a configuration, in the order of the document.
type Faults []Fault

// Error has one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// placed is a fault and where it belongs in the document.
type placed struct {
	Fault
	place int
}

// reader collects faults while a document is read. Each of its methods that reads a value reports
// what is wrong with it and answers with something harmless, so that reading goes on.
type reader struct {
	env    func(string) (string, bool)
	places int
	faults []placed
}

// fault reports a value. A node whose text could not be made up was reported before.
func (r *reader) fault(n *node, want string) {
	r.faultFound(n, n.found(), want)
}

func (r *reader) faultFound(n *node, found, want string) {
	if n.broken {
		return
	}
	r.faults = append(r.faults, placed{Fault{n.path, found, want}, n.place})
}

// missing reports a field of n that isn't there.
func (r *reader) missing(n *node, field, want string) {
	if n.broken {
		return
	}
	r.faults = append(r.faults, placed{Fault{join(n.path, field), "nothing", want}, n.place})
}

// result is nil or all faults, ordered by place.
func (r *reader) result() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b placed) int { return a.place - b.place })
	out := make(Faults, len(r.faults))
	for i, f := range r.faults {
		out[i] = f.Fault
	}
	return out
}
