package config

import "testing"

func TestSmoke(t *testing.T) {
	c, err := Parse([]byte(`{"version":1,"currency":"EUR","store":{"cluster":"b"},"identity":{"tenant":{"header":"x-tenant"}},
	"models":{"gpt-4o":{"price":{"input":"2.5","output":"10"}}},"unknown_model":{"use":"gpt-4o"},
	"limits":[{"name":"a","by":["tenant"],"count":"tokens","bucket":{"rate":"60000/m","burst":1e+05}},
	{"name":"m","by":[],"count":"cost","max":"50","window":{"calendar":"month","timezone":"Europe/Amsterdam"}}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %+v", c.Limits[0], c.Limits[1])
	_, err = Parse([]byte(`{"version":2,"x":1,"currency":"EUR","store":{"cluster":"b","token":"${A}"},"limits":[{"bucket":{}}]}`), nil)
	t.Log(err)
}
