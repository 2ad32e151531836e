package buckettest

import (
	"testing"

	"github.com/emmer-proxy/emmer/bucket/script"
)

func TestModel(t *testing.T) {
	Run(t, func(*testing.T) Store { return NewModel() })
}

func TestMiniredis(t *testing.T) {
	Run(t, func(t *testing.T) Store {
		m := NewMini(t)
		t.Cleanup(func() { checkKeys(t, m.Redis, m.Now()) })
		return m
	})
}

func TestRedis(t *testing.T) {
	client := StartServer(t).Client()
	Run(t, func(t *testing.T) Store {
		r := NewRedis(t, client)
		t.Cleanup(func() { checkKeys(t, r, r.Now()) })
		return r
	})
}

// The race must be able to fail: with a script whose check is off by what was used, or missing, it does.
func TestRaceSeesABrokenScript(t *testing.T) {
	client := StartServer(t).Client()
	for _, broken := range []string{
		"if false then",
		"if q.n>0 and q.n>q.max then",
		"if q.n>0 and q.n>=q.max-q.used then",
		"if q.n>0 and q.n>q.max-q.used+1000 then",
	} {
		r := NewRedis(t, client)
		r.Edit(script.Reserve, "if q.n>0 and q.n>q.max-q.used then", broken)
		granted, err := Overshoot(r, 64)
		if err != nil {
			t.Fatal(err)
		}
		if granted == 10 {
			t.Errorf("10 of 64 were granted with %q", broken)
		}
	}
	granted, err := Overshoot(NewRedis(t, client), 64)
	if err != nil || granted != 10 {
		t.Errorf("%d were granted, %v", granted, err)
	}
}
