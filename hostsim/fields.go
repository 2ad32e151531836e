package hostsim

import (
	"encoding/binary"
	"strings"
)

// fields is a header or trailer map: names in lower case, repeated names kept, order kept.
type fields struct {
	list [][2]string
}

// get returns the first value of a name.
func (f *fields) get(name string) (string, bool) {
	if f == nil {
		return "", false
	}
	name = strings.ToLower(name)
	for _, p := range f.list {
		if p[0] == name {
			return p[1], true
		}
	}
	return "", false
}

func (f *fields) value(name string) string {
	v, _ := f.get(name)
	return v
}

func (f *fields) add(name, value string) {
	f.list = append(f.list, [2]string{strings.ToLower(name), value})
}

func (f *fields) remove(name string) {
	name = strings.ToLower(name)
	kept := f.list[:0]
	for _, p := range f.list {
		if p[0] != name {
			kept = append(kept, p)
		}
	}
	f.list = kept
}

// replace puts one value where the first one stood.
func (f *fields) replace(name, value string) {
	name = strings.ToLower(name)
	kept, done := f.list[:0], false
	for _, p := range f.list {
		if p[0] != name {
			kept = append(kept, p)
		} else if !done {
			kept, done = append(kept, [2]string{name, value}), true
		}
	}
	f.list = kept
	if !done {
		f.list = append(f.list, [2]string{name, value})
	}
}

func (f *fields) len() int {
	if f == nil {
		return 0
	}
	return len(f.list)
}

const (
	maxPairs     = 1024
	maxPairsSize = 1 << 20
)

// encodePairs is the ABI's form: count, sizes, then NUL-terminated names and values.
func encodePairs(list [][2]string) []byte {
	size := 4
	for _, p := range list {
		size += 10 + len(p[0]) + len(p[1])
	}
	b := make([]byte, 0, size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	for _, p := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[1])))
	}
	for _, p := range list {
		b = append(append(b, p[0]...), 0)
		b = append(append(b, p[1]...), 0)
	}
	return b
}

// decodePairs reads what encodePairs writes, within the limits of cpp-host (limits.h: 1024 pairs, 1 MiB).
func decodePairs(b []byte) ([][2]string, bool) {
	if len(b) == 0 {
		return nil, true
	}
	if len(b) < 4 || len(b) > maxPairsSize {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > maxPairs || len(b) < 4+8*n {
		return nil, false
	}
	sizes, data := b[4:4+8*n], b[4+8*n:]
	list := make([][2]string, n)
	for i := range list {
		for j := range 2 {
			size := int(binary.LittleEndian.Uint32(sizes))
			sizes = sizes[4:]
			if size < 0 || size+1 > len(data) || data[size] != 0 {
				return nil, false
			}
			list[i][j] = string(data[:size])
			data = data[size+1:]
		}
		list[i][0] = strings.ToLower(list[i][0])
	}
	return list, true
}
