package buckettest

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

func background() context.Context { return context.Background() }

// Where Redis has no memory left, a call fails before it has written anything.
func TestOutOfMemoryTakesNothing(t *testing.T) {
	client := StartServer(t).Client()
	f := &fixture{T: t, s: NewRedis(t, client)}
	b, w := slow("b", 100), f.hourly("w", 100)
	held := long(f.id(), each(30, b, w))
	f.reserve(held, bucket.Granted)
	f.must(client.ConfigSet(background(), "maxmemory", "1").Err())
	fresh := long(f.id(), each(20, b, w))
	if r, err := f.s.Reserve(fresh); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("reserve: %+v, %v", r, err)
	}
	if r, err := f.s.Settle(bucket.SettleRequest{ID: held.ID, Lease: 1, Keep: hour, Cell: 1, Items: each(10, b, w)}); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("settle: %+v, %v", r, err)
	}
	if r, err := f.s.Renew(bucket.RenewRequest{ID: held.ID, Lease: 3 * hour, Keep: hour, Cell: 1, Items: held.Items}); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("renew: %+v, %v", r, err)
	}
	f.stands(b, 70, 30)
	f.stands(w, 70, 30)
	f.must(client.ConfigSet(background(), "maxmemory", "0").Err())
	f.reserve(fresh, bucket.Granted)
	f.settle(held.ID, 0, each(10, b, w), bucket.SettledLive)
	f.stands(b, 70, 20)
}

// C91.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	client := StartServer(t).Client()
	f := &fixture{T: t, s: NewRedis(t, client)}
	b := slow("b", 100)
	q := long(f.id(), each(30, b))
	f.reserve(q, bucket.Granted)
	f.must(client.ScriptFlush(background()).Err())
	f.settle(q.ID, 0, each(10, b), bucket.SettledLive)
	f.stands(b, 90, 0)
	loaded, err := client.ScriptExists(background(), script.Reserve.SHA, script.Settle.SHA).Result()
	f.must(err)
	if loaded[0] || !loaded[1] {
		t.Errorf("loaded: %v", loaded)
	}
}

// C88: a refund must not bring back a limit that has gone, below zero and without a TTL.
func TestRefundOfALimitThatHasGone(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	b, w := slow("b", 1000), f.hourly("w", 1000)
	q, over := long(f.id(), each(400, b, w)), long(f.id(), each(400, b, w))
	f.reserve(q, bucket.Granted)
	f.reserve(over, bucket.Granted)
	f.must(client.Del(background(), r.Layout.Limit(b), r.Layout.Limit(w)).Err())
	f.left(f.settle(q.ID, 0, each(50, b, w), bucket.SettledLive).Remaining, 1000, 1000)
	if n := client.Exists(background(), r.Layout.Limit(b), r.Layout.Limit(w)).Val(); n != 0 {
		t.Errorf("%d keys came back", n)
	}
	f.left(f.settle(over.ID, 0, each(450, b, w), bucket.SettledLive).Remaining, 950, 950)
	checkKeys(t, r, r.Now())
}

// A limit that is full again leaves nothing behind.
func TestEmptyLimitsAreRemoved(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	for i := range 50 {
		b, w := slow("b", 1000), f.hourly("w", 1000)
		b.Entity, w.Entity = fmt.Sprint(i), fmt.Sprint(i)
		q := long(f.id(), each(1, b, w))
		f.reserve(q, bucket.Granted)
		f.settle(q.ID, 0, each(0, b, w), bucket.SettledLive)
	}
	if keys := client.Keys(background(), r.Layout.Namespace+":*:l:*").Val(); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
}

// C89: the TTL of each kind of key is its need and some slack, not for ever.
func TestTTLs(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	b := bucket.Limit{Name: "b", Kind: bucket.TokenBucket, Rate: 1, Per: second, Burst: 100}
	w := f.hourly("w", 100)
	q := bucket.ReserveRequest{ID: "q", Lease: 60 * second, Keep: 900 * second, Cell: 5 * second, Items: each(100, b, w)}
	f.reserve(q, bucket.Granted)
	ttl := func(key string) bucket.Millis {
		return bucket.Millis(client.PTTL(background(), key).Val().Milliseconds())
	}
	// The record: lease, keep and up to two cells. The bucket: lease and keep outlast its 100 s. The
	// window: the half hour to its end, and keep.
	for key, want := range map[string][2]bucket.Millis{
		r.Layout.Record("q"): {950 * second, 972 * second},
		r.Layout.Limit(b):    {950 * second, 2100 * second},
		r.Layout.Limit(w):    {2690 * second, 2765 * second},
	} {
		if got := ttl(key); got < want[0] || got > want[1] {
			t.Errorf("%s expires in %d ms, want %v", key, got, want)
		}
	}
	f.settle("q", 0, each(1, b, w), bucket.SettledLive)
	f.reserve(q, bucket.Settled)
	if got := ttl(r.Layout.Record("q")); got < 950*second {
		t.Errorf("the settled record expires in %d ms", got)
	}
	checkKeys(t, r, r.Now())
}

// Redis itself says that a look at a level writes nothing.
func TestLevelOnlyReads(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	w := f.hourly("w", 100)
	f.reserve(short(f.id(), each(30, w)), bucket.Granted)
	f.s.Pass(3)
	c, err := r.Layout.Level(w, "no")
	f.must(err)
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	v, err := client.EvalRO(background(), c.Script.Text, c.Keys, args...).Slice()
	f.must(err)
	reply, err := values(v)
	f.must(err)
	level, err := script.DecodeLevel(c, reply)
	if err != nil || level.Remaining != 100 || level.Reserved != 0 {
		t.Errorf("%+v, %v", level, err)
	}
}

// A flag that an operator has set by hand, in any form, stops calls.
func TestKillFlagsOfAnyForm(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	for _, tt := range []struct{ value, reason string }{
		{"", ""}, {"1", "1"}, {"stop", "stop"}, {"é\x00\n|", "?????"[:4] + "|"}, {strings.Repeat("x", 5000), strings.Repeat("x", 512)},
	} {
		f.must(client.HSet(background(), r.Layout.Ctl(), "global:all", tt.value).Err())
		q := long(f.id(), nil)
		q.Kills = []string{"global:all"}
		if got := f.reserve(q, bucket.Killed); got.Reason != tt.reason {
			t.Errorf("%q: %q", tt.value, got.Reason)
		}
	}
}

// Many gateways with duplicates, crashes, late settles and renewals: nothing is granted above a
// limit, and in the end every limit has exactly what was used.
func TestTotalsAreRight(t *testing.T) {
	client := StartServer(t).Client()
	r := NewRedis(t, client)
	f := &fixture{T: t, s: r}
	w, b := f.hourly("w", 20_000), slow("b", 15_000)
	const keep = 60 * second
	var (
		mu    sync.Mutex
		fault error
		used  bucket.Amount
		group sync.WaitGroup
	)
	fail := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if fault == nil {
			fault = fmt.Errorf(format, args...)
		}
	}
	for worker := range 12 {
		group.Go(func() {
			rnd := rand.New(rand.NewSource(int64(worker)))
			for i := range 60 {
				q := bucket.ReserveRequest{
					ID: fmt.Sprintf("%d-%d", worker, i), Lease: hour, Keep: keep, Cell: 2,
					Items: each(bucket.Amount(1+rnd.Intn(400)), w, b),
				}
				fate := rnd.Intn(10)
				if fate < 4 {
					q.Lease = 1 // crashes, or settles late
				}
				got, err := r.Reserve(q)
				if err == nil && got.Outcome == bucket.Granted && rnd.Intn(3) == 0 {
					_, err = r.Reserve(q)
				}
				if err != nil {
					fail("reserve: %w", err)
					return
				}
				for _, left := range got.Remaining {
					if left < 0 && got.Outcome == bucket.Granted {
						fail("granted into debt: %+v", got)
					}
				}
				if got.Outcome != bucket.Granted || fate < 2 {
					continue
				}
				if fate == 9 {
					if _, err := r.Renew(bucket.RenewRequest{ID: q.ID, Lease: 2 * hour, Keep: keep, Cell: 2, Items: q.Items}); err != nil {
						fail("renew: %w", err)
					}
				}
				actual := bucket.Amount(rnd.Intn(int(q.Items[0].Amount) + 1))
				booked := 0
				for range 1 + rnd.Intn(3) {
					s, err := r.Settle(bucket.SettleRequest{ID: q.ID, Deadline: got.Deadline, Lease: hour, Keep: keep, Cell: 2, Items: each(actual, w, b)})
					if err != nil {
						fail("settle: %w", err)
						return
					}
					if s.Outcome != bucket.SettledDuplicate {
						booked++
					}
				}
				if booked != 1 {
					fail("%s was booked %d times", q.ID, booked)
				}
				mu.Lock()
				used += actual
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if fault != nil {
		t.Fatal(fault)
	}
	f.s.Pass(5) // what crashed has ended
	f.stands(w, 20_000-used, 0)
	f.stands(b, 15_000-used, 0)
	if used < 5000 {
		t.Errorf("only %d were used", used)
	}
	checkKeys(t, r, r.Now())
}

func TestServerStopsAndComesBack(t *testing.T) {
	s := StartServer(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: 50 * time.Millisecond, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	ping := func() error { return client.Ping(background()).Err() }
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if err := ping(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	eventual(t, "answers again", func() bool { return ping() == nil })
	if err := client.Set(background(), "x", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := ping(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	eventual(t, "answers after the restart", func() bool { return errors.Is(client.Get(background(), "x").Err(), redis.Nil) })
	if addr := StartRedis(t); addr == s.Addr() {
		t.Errorf("two servers on %s", addr)
	}
}
