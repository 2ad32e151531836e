package dialect

import "testing"

func TestReadsCharset(t *testing.T) {
	for _, tt := range []struct {
		contentType string
		want        bool
	}{
		{"", true},
		{"application/json", true},
		{"application/json; charset=utf-8", true},
		{"application/json;charset=UTF8", true},
		{"application/json; charset = \"utf-8\"; x=y", true},
		{"text/plain; charset=ISO-8859-1", true},
		{"application/json; charset=utf-7", false},
		{"application/json; charset=utf-16", false},
		{"application/json; CharSet=\"utf-7\"", false},
		{"application/json; charset=utf-8; charset=utf-7", false},
		{"application/json; charset=utf-8, application/json; charset=utf-7", false},
		{"application/json; charset*=utf-8''utf-7", false},
		{"application/json; charset", false},
		{"application/json; charset=\"utf-8\\\"", false},
	} {
		if got := ReadsCharset(tt.contentType); got != tt.want {
			t.Errorf("%q: %v", tt.contentType, got)
		}
	}
}
