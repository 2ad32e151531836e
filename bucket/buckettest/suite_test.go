package buckettest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

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

// The README says how many cases there are, and each has a name of its own.
func TestCasesAreAsManyAsTheReadmeSays(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	all, some := slices.Concat(timeless(), timed()), timeless()
	said := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{fmt.Sprintf("has %d named cases where the clock is driven", len(all)), fmt.Sprintf(" and %d of them on true clocks", len(some))} {
		if !strings.Contains(said, want) {
			t.Errorf("the README lacks %q", want)
		}
	}
	names := map[string]bool{}
	for _, c := range all {
		if names[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		names[c.name] = true
	}
}

func TestRedis(t *testing.T) {
	client := StartServer(t).Client()
	Run(t, func(t *testing.T) Store {
		r := NewRedis(t, client)
		t.Cleanup(func() { checkKeys(t, r, r.Now()) })
		return r
	})
}

// Each store has a hash tag of its own, so the cases are spread over the nodes. C94: here a key that
// was left out of KEYS, or a second tag, would be an error.
func TestRedisCluster(t *testing.T) {
	masters, _ := StartReplicated(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{masters[0].Addr(), masters[1].Addr(), masters[2].Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	seen := map[int64]bool{}
	stores := 0
	Run(t, func(t *testing.T) Store {
		r := NewRedis(t, client)
		stores++
		r.Layout.Tag = fmt.Sprint("tag", stores)
		slot, err := client.ClusterKeySlot(background(), r.Layout.Ctl()).Result()
		if err != nil {
			t.Fatal(err)
		}
		seen[slot*3/16384] = true
		t.Cleanup(func() { checkKeys(t, r, r.Now()) })
		return r
	})
	if len(seen) != 3 {
		t.Errorf("the cases used %d of 3 nodes", len(seen))
	}
}

// The race must be able to fail: with a script whose check is off by what was used, or missing, it does.
func TestRaceSeesABrokenScript(t *testing.T) {
	client := StartServer(t).Client()
	for _, broken := range []string{
		"if false then short=true end",
		"if q.n>0 and q.n>q.max then short=true end",
		"if q.n>0 and q.n>q.max-q.used+1000 then short=true end",
	} {
		r := NewRedis(t, client)
		r.Edit(script.Reserve, "if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then short=true end", broken)
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
