package hostsim

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"net"
	"sort"
	"strconv"
	"strings"
)

var propertyCalls = map[string]hostFunc{
	"proxy_get_property": {params: "iiii", do: func(v *vm, a []uint64) status {
		path, ok := v.text(a[0], a[1])
		if !ok {
			return statusInvalidMemoryAccess
		}
		c := v.context()
		if c == nil || c.root == nil {
			return statusNotFound
		}
		value, ok := c.property(strings.Split(strings.TrimSuffix(path, "\x00"), "\x00"))
		if !ok {
			return statusNotFound
		}
		return v.give(value, a[2], a[3])
	}},
	"proxy_set_property": {params: "iiii", do: func(v *vm, a []uint64) status {
		path, ok1 := v.text(a[0], a[1])
		value, ok2 := v.read(a[2], a[3])
		if !ok1 || !ok2 {
			return statusInvalidMemoryAccess
		}
		c := v.context()
		if c == nil || c.isRoot() {
			return statusNotFound
		}
		if c.network != nil {
			c.network.n.state["wasm."+path] = value
			return statusOK
		}
		c.filter.s.state["wasm."+path] = value
		return statusOK
	}},
}

// Encodings of the ABI: integers and times are 8 bytes, little endian; booleans one byte.
func number(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

func boolean(b bool) []byte { return []byte{byte(flag(b))} }

func (c *vmContext) property(path []string) ([]byte, bool) {
	p := c.root.plugin
	switch {
	case c.filter != nil:
		p = c.filter.plugin
	case c.network != nil:
		p = c.network.plugin
	}
	switch path[0] {
	case "plugin_name":
		return []byte(p.name), true
	case "plugin_root_id":
		return []byte(p.rootID), true
	case "plugin_vm_id":
		return []byte(p.vmID), true
	}
	if c.network != nil {
		return c.network.n.property(path)
	}
	if c.filter == nil {
		if len(path) == 2 && path[0] == "xds" && path[1] == "node" {
			return []byte("hostsim"), true
		}
		return nil, false
	}
	return c.filter.s.property(path)
}

// property is what a connection tells streams and network filters alike; known: the path is one of its own.
func (c *connection) property(first, second string) (v []byte, known, ok bool) {
	switch first {
	case "connection":
		switch second {
		case "id":
			return number(c.id), true, true
		case "mtls":
			return boolean(false), true, true
		}
		return nil, true, false
	case "connection_id":
		return number(c.id), true, true
	case "source":
		v, ok = address(c.remote, second)
		return v, true, ok
	case "destination":
		v, ok = address(c.local, second)
		return v, true, ok
	}
	return nil, false, false
}

func (s *stream) property(path []string) ([]byte, bool) {
	rest := path[1:]
	one := ""
	if len(rest) > 0 {
		one = rest[0]
	}
	if v, known, ok := s.conn.property(path[0], one); known {
		return v, ok
	}
	switch path[0] {
	case "request":
		return s.requestProperty(one, rest)
	case "response":
		return s.responseProperty(one, rest)
	case "upstream":
		if s.upstream == "" {
			return nil, false
		}
		return address(s.upstream, one)
	case "xds":
		switch one {
		case "cluster_name":
			name := s.cluster
			if name == "" {
				name, _ = s.listener.route(s.paths[request].head)
			}
			return []byte(name), name != ""
		case "route_name", "virtual_host_name":
			return []byte(s.listener.name), true
		case "node":
			return []byte("hostsim"), true
		}
		return nil, false
	case "metadata":
		if len(rest) < 3 || one != "filter_metadata" || rest[1] != "envoy.filters.http.jwt_authn" || s.claims == nil || rest[2] != s.metadata {
			return nil, false
		}
		return claim(s.claims, rest[3:])
	case "filter_state":
		v, ok := s.state[strings.Join(rest, "\x00")]
		return v, ok
	}
	v, ok := s.state["wasm."+strings.Join(path, "\x00")]
	return v, ok
}

func (s *stream) requestProperty(one string, rest []string) ([]byte, bool) {
	head := s.paths[request].head
	header := func(name string) ([]byte, bool) {
		v, ok := head.get(name)
		return []byte(v), ok
	}
	path := head.value(":path")
	bare, query, _ := strings.Cut(path, "?")
	switch one {
	case "path":
		return []byte(path), true
	case "url_path":
		return []byte(bare), true
	case "query":
		return []byte(query), true
	case "host":
		return header(":authority")
	case "scheme":
		return header(":scheme")
	case "method":
		return header(":method")
	case "id":
		return header("x-request-id")
	case "referer":
		return header("referer")
	case "useragent":
		return header("user-agent")
	case "headers":
		if len(rest) == 2 {
			return header(rest[1])
		}
		return encodePairs(head.list), len(rest) == 1
	case "protocol":
		return []byte(s.protocol), true
	case "time":
		return number(uint64(s.begun.UnixNano())), true
	case "size":
		if n, err := strconv.ParseUint(head.value("content-length"), 10, 64); err == nil {
			return number(n), true
		}
		return number(uint64(s.received)), true
	case "total_size":
		return number(uint64(s.received) + headSize(head)), true
	case "duration":
		if s.destroyed {
			return number(uint64(s.duration)), true
		}
	}
	return nil, false
}

func (s *stream) responseProperty(one string, rest []string) ([]byte, bool) {
	head := s.paths[response].head
	switch one {
	case "code":
		if s.code != 0 {
			return number(uint64(s.code)), true
		}
	case "code_details":
		return []byte(s.details), s.explained
	case "flags":
		return number(s.flags), true
	case "headers":
		if head == nil {
			return nil, false
		}
		if len(rest) == 2 {
			v, ok := head.get(rest[1])
			return []byte(v), ok
		}
		return encodePairs(head.list), true
	case "size":
		return number(uint64(s.sent)), s.destroyed
	case "total_size":
		return number(uint64(s.sent) + headSize(head)), s.destroyed
	}
	return nil, false
}

func headSize(f *fields) uint64 {
	n := 0
	if f != nil {
		for _, h := range f.list {
			n += len(h[0]) + len(h[1])
		}
	}
	return uint64(n)
}

func address(hostPort, one string) ([]byte, bool) {
	switch one {
	case "address":
		return []byte(hostPort), true
	case "port":
		_, port, err := net.SplitHostPort(hostPort)
		n, err2 := strconv.ParseUint(port, 10, 16)
		return number(n), err == nil && err2 == nil
	}
	return nil, false
}

// claim walks into a verified payload: names in objects, indexes in lists.
func claim(v any, path []string) ([]byte, bool) {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return structValue(v)
}

// structValue encodes a value of a google.protobuf.Struct: numbers are doubles, lists and maps are pairs.
func structValue(v any) ([]byte, bool) {
	switch t := v.(type) {
	case string:
		return []byte(t), true
	case bool:
		return boolean(t), true
	case json.Number:
		f, err := t.Float64()
		return number(math.Float64bits(f)), err == nil
	case []any:
		var list [][2]string
		for i, item := range t {
			b, ok := structValue(item)
			if ok {
				list = append(list, [2]string{strconv.Itoa(i), string(b)})
			}
		}
		return encodePairs(list), true
	case map[string]any:
		names := make([]string, 0, len(t))
		for name := range t {
			names = append(names, name)
		}
		sort.Strings(names)
		var list [][2]string
		for _, name := range names {
			if b, ok := structValue(t[name]); ok {
				list = append(list, [2]string{name, string(b)})
			}
		}
		return encodePairs(list), true
	}
	return nil, true // null
}
