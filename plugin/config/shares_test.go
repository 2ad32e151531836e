package config

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// base's classes are fast, the default, and slow.
func sharedBucket(bucket, more string) string {
	return `[{"name": "a", "count": "tokens", "bucket": ` + bucket + `, ` + more + `}]`
}

const hundred = `{"rate": "100/s", "burst": 100}`

var shareFaults = []struct{ section, text, want string }{
	{"limits", sharedBucket(hundred, `"headroom": "10%", "reserved": {"slow": "5%"}, "shares": {"fast": {"part": "70%", "burst": 40, "borrow": false}}`), ""},
	{"limits", sharedBucket(hundred, `"headroom": "0%", "reserved": {}, "shares": []`),
		"limits[0].headroom: found \"0%\"; want a whole share from 1% to 99%, which is left unused\n" +
			"limits[0].reserved: found an object; want an object of classes and the share of each, such as 30%\n" +
			"limits[0].shares: found a list; want an object of classes and the share of each, such as 30%"},
	{"limits", sharedBucket(hundred, `"headroom": 10`), "limits[0].headroom: found 10; want a whole share from 1% to 99%, which is left unused"},
	{"limits", sharedBucket(hundred, `"headroom": "100%"`), "limits[0].headroom: found \"100%\"; want a whole share from 1% to 99%, which is left unused"},
	{"limits", sharedBucket(hundred, `"reserved": {"slow": "5%", "slow": "6%"}`), "limits[0].reserved.slow: found it a second time; want it once"},
	{"limits", sharedBucket(hundred, `"shares": {"fast": "0%", "slow": "12.5%", "odd": "10%"}`),
		"limits[0].shares.fast: found \"0%\"; want a whole share from 1% to 100%\n" +
			"limits[0].shares.slow: found \"12.5%\"; want a whole share from 1% to 100%\n" +
			"limits[0].shares.odd: found a class that is not in one_of of class; want one of fast, slow"},
	{"limits", sharedBucket(hundred, `"shares": {"fast": {"burst": 0, "borrow": "yes", "rate": "5/s"}, "slow": 30}`),
		"limits[0].shares.fast.part: found nothing; want a whole share from 1% to 100%\n" +
			"limits[0].shares.fast.burst: found 0; want a whole number from 1 to 9007199254740991\n" +
			"limits[0].shares.fast.borrow: found \"yes\"; want true or false\n" +
			"limits[0].shares.fast.rate: found an unknown field; want one of part, burst, borrow\n" +
			"limits[0].shares.slow: found 30; want a whole share from 1% to 100%"},
	{"limits", sharedBucket(hundred, `"shares": {"fast": "70%", "slow": "31%"}`), "limits[0].shares: found 101% together; want at most 100%"},
	{"limits", sharedBucket(hundred, `"reserved": {"fast": "70%", "slow": "30%"}`), "limits[0].reserved: found 100% together; want at most 99%"},
	{"limits", sharedBucket(hundred, `"reserved": {"slow": "5%"}, "shares": {"slow": "70%"}`), "limits[0].shares.slow: found a class that is reserved for; want it in either reserved or shares"},
	{"limits", sharedBucket(hundred, `"by": ["class"], "shares": {"fast": "70%", "slow": "30%"}`), "limits[0].shares: found classes, and class in by; want class left out of by, because classes can share only what they count together"},
	{"limits", sharedBucket(hundred, `"for": {"class": "fast"}, "shares": {"fast": "70%", "slow": "30%"}`), "limits[0].shares.slow: found a class that the limit is not for; want it left out, or in for.class too"},
	{"limits", sharedBucket(hundred, `"for": {"class": "fast"}, "shares": {"fast": "100%"}`), ""},
	{"limits", sharedBucket(hundred, `"shares": {"fast": "100%"}`), "limits[0].shares: found nothing left for class slow; want a share for it, or less than 100% together"},
	{"limits", sharedBucket(hundred, `"shares": {"fast": "99%"}`), ""},
	{"limits", sharedBucket(hundred, `"shares": {"fast": {"part": "50%", "burst": 60}, "slow": {"part": "50%", "burst": 41}}`), "limits[0].shares.slow.burst: found 41; want at most the 40 that there is left to be divided"},
	{"limits", sharedBucket(hundred, `"shares": {"fast": {"part": "50%", "burst": 100}, "slow": "50%"}`), "limits[0].bucket.burst: found 100; want so much that each class has at least 1 of it"},
	{"limits", sharedBucket(hundred, `"headroom": "10%", "reserved": {"fast": {"part": "50%", "burst": 90}}`), "limits[0].reserved.fast.burst: found 90; want less than the 90 that there is to be divided"},
	{"limits", sharedBucket(`{"rate": "100/s", "burst": 1}`, `"reserved": {"fast": "50%"}`), "limits[0].bucket.burst: found 1; want so much that each class has at least 1 of it"},
	{"limits", sharedBucket(`{"rate": "100/s", "burst": 1}`, `"shares": {"fast": "50%", "slow": "50%"}`), "limits[0].bucket.burst: found 1; want so much that each class has at least 1 of it"},
	{"limits", sharedBucket(`{"rate": "1/d", "burst": 5}`, `"headroom": "10%"`), "limits[0].bucket.rate: found \"1/d\"; want a rate of which headroom leaves at least 1 a day"},
	{"limits", sharedBucket(`{"rate": "2/d", "burst": 5}`, `"shares": {"fast": "70%", "slow": "30%"}`), "limits[0].shares.slow: found \"30%\"; want a share of the rate that is at least 1 a day"},
	{"limits", sharedBucket(`{"rate": "100/s", "burst": 562949953421312}`, `"shares": {"fast": "70%", "slow": "30%"}`), "limits[0].bucket.burst: found 562949953421312; want what is below 2^49 after headroom, because no more can be divided"},
	{"limits", sharedBucket(`{"rate": "100/s", "burst": 562949953421312}`, `"headroom": "1%", "shares": {"fast": "70%", "slow": "30%"}`), ""},
	{"limits", sharedBucket(`{"rate": "100/s", "burst": 562949953421312}`, `"headroom": "1%"`), ""},
	{"limits", `[{"name": "a", "count": "cost", "for": {"model": "m-1"}, "bucket": {"rate": "1/s", "burst": "562950"}, "shares": {"fast": "70%", "slow": "30%"}}]`,
		"limits[0].bucket.burst: found \"562950\"; want what is below 2^49 of 1/1000000000 EUR after headroom, because no more can be divided"},
	{"limits", `[{"name": "a", "count": "tokens", "max": 5, "window": {"calendar": "day"}, "headroom": "10%"}, {"name": "b", "count": "concurrency", "max": 5, "shares": {"fast": "50%"}}, {"name": "c", "count": "tokens", "burn": {"above": "1/m", "for": "1m", "then": "kill"}, "reserved": {"fast": "50%"}}]`,
		"limits[0].headroom: found it beside window; want it left out, because only a bucket can be divided\n" +
			"limits[1].shares: found it beside count: concurrency; want it left out, because only a bucket can be divided\n" +
			"limits[2].reserved: found it beside burn; want it left out, because burn refuses nothing by itself"},
	// A bucket that is wrong itself is told once.
	{"limits", sharedBucket(`{"rate": "0/s", "burst": 100}`, `"headroom": "10%", "shares": {"fast": "70%", "slow": "30%"}`), "limits[0].bucket.rate: found \"0/s\"; want a rate such as 60000/m, from 1 to 9007199254740991 per s, m, h or d"},
	{"identity", `{"org": {"value": "a"}}`, ""},
}

func TestShareFaults(t *testing.T) {
	for _, c := range shareFaults {
		_, err := Parse([]byte(doc(c.section, c.text)), env)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s\n", c.section, c.text, got, c.want)
		}
	}
}

// Classes are values of an identity that says which there are.
func TestSharesNeedClasses(t *testing.T) {
	const limits = `[{"name": "a", "count": "tokens", "bucket": {"rate": "100/s", "burst": 100}, "shares": {"fast": "70%", "slow": "30%"}}]`
	for identity, want := range map[string]string{
		`{"org": {"value": "a"}}`:                                                                            "limits[0].shares: found classes, and no identity named class with one_of; want identity.class, with one_of to list the classes",
		`{"class": {"header": "x-class"}}`:                                                                   "limits[0].shares: found classes, and no identity named class with one_of; want identity.class, with one_of to list the classes",
		`{"class": {"header": "x-class", "one_of": ["fast", "slow"]}}`:                                       "",
		`{"class": {"header": "x-class", "one_of": ["fast", "slow"], "missing": "pass"}}`:                    "limits[0].shares: found nothing left for calls without a class; want a default for class, or less than 100% together",
		`{"class": {"header": "x-class", "one_of": ["fast", "slow"], "missing": "pass", "default": "slow"}}`: "",
		`{"class": {"header": "x-class", "one_of": ["fast", "slow", "new"]}}`:                                "limits[0].shares: found nothing left for class new; want a share for it, or less than 100% together",
	} {
		_, err := Parse([]byte(doc("identity", identity, "limits", limits)), env)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if strings.Contains(identity, "org") {
			got, _, _ = strings.Cut(got, "\n") // base's other limit is not there
		}
		if got != want {
			t.Errorf("%s:\ngot:\n%s\nwant:\n%s\n", identity, got, want)
		}
	}
	many, parts := "", ""
	for i := range mostClasses + 1 {
		many += fmt.Sprintf(`, "c%d"`, i)
		parts += fmt.Sprintf(`, "c%d": "1%%"`, i)
	}
	_, err := Parse([]byte(doc("identity", `{"class": {"header": "x", "one_of": [`+many[2:]+`]}}`,
		"limits", sharedBucket(hundred, `"shares": {`+parts[2:]+`}`))), env)
	if err == nil || err.Error() != "limits[0].shares: found 13 classes, with those reserved for; want at most 12" {
		t.Errorf("%v", err)
	}
}

func TestFiguresOfShares(t *testing.T) {
	for _, x := range []struct{ bucket, more, want string }{
		{hundred, `"headroom": "10%"`, "9 in 100 ms, burst 90"},
		{`{"rate": "7/d", "burst": 1}`, `"headroom": "10%"`, "1 in 14400000 ms, burst 1"}, // 6 a day: 6.3 would need ten days
		{`{"rate": "700/d", "burst": 19}`, `"headroom": "10%"`, "7 in 960000 ms, burst 17"},
		{hundred, `"shares": {"fast": "70%", "slow": "30%"}`, "10 in 100 ms, burst 100; fast 7 burst 70; slow 3 burst 30"},
		{`{"rate": "2000000/m", "burst": 2000000}`, `"headroom": "10%", "reserved": {"slow": "5%"}, "shares": {"fast": "70%"}`,
			"570 in 20 ms, burst 1710000; slow! 30 burst 90000; fast 399 burst 1197000"},
		// One token a day can't be cut in three: rounded down, and what is over is left to all.
		{`{"rate": "10/d", "burst": 10}`, `"shares": {"fast": "33%", "slow": "33%"}`, "10 in 86400000 ms, burst 10; fast 3 burst 3; slow 3 burst 3"},
		// Exact in 10^6 minutes: rounded down to whole numbers a day.
		{`{"rate": "97/m", "burst": 97}`, `"headroom": "7%", "reserved": {"slow": "3%"}, "shares": {"fast": "33%"}`,
			"126005 in 86400000 ms, burst 88; slow! 3897 burst 2; fast 41581 burst 29"},
		{`{"rate": "9000000000000/s", "burst": 5}`, `"shares": {"fast": "33%", "slow": "10%"}`, "9000000000 in 1 ms, burst 5; fast 2970000000 burst 1; slow 900000000 burst 1"},
		// A class with a burst of its own leaves the others less, or what is their part.
		{hundred, `"shares": {"fast": "70%", "slow": {"part": "30%", "burst": 60}}`, "10 in 100 ms, burst 100; fast 7 burst 40; slow 3 burst 60"},
		{hundred, `"shares": {"fast": "70%", "slow": {"part": "30%", "burst": 5}}`, "10 in 100 ms, burst 100; fast 7 burst 70; slow 3 burst 5"},
		{hundred, `"shares": {"fast": {"part": "70%", "borrow": false}, "slow": "1%"}`, "100 in 1000 ms, burst 100; fast- 70 burst 70; slow 1 burst 1"},
	} {
		c, err := Parse([]byte(doc("limits", sharedBucket(x.bucket, x.more))), env)
		if err != nil {
			t.Errorf("%s %s: %v", x.bucket, x.more, err)
			continue
		}
		if got := figures(c.Limits[0]); got != x.want {
			t.Errorf("%s %s:\n%s, want\n%s", x.bucket, x.more, got, x.want)
		}
	}
}

func figures(l *Limit) string {
	if l.Pool == nil {
		return fmt.Sprintf("%d in %d ms, burst %d", l.Rate, l.Per, l.Burst)
	}
	s := fmt.Sprintf("%d in %d ms, burst %d", l.Pool.Rate, l.Pool.Per, l.Pool.Burst)
	for _, sh := range l.Pool.Shares {
		mark := ""
		if sh.Reserved {
			mark = "!"
		}
		if !sh.Borrow {
			mark += "-"
		}
		s += fmt.Sprintf("; %s%s %d burst %d", sh.Name, mark, sh.Rate, sh.Burst)
	}
	return s
}

// TestAnyDivision compares rates with fractions: equal where a period of at most a day makes all of
// them whole numbers, and else as near as such a period allows, the whole never above its rate.
func TestAnyDivision(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 7))
	units := map[string]int64{"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
	passed, exact := 0, 0
	for range 800 {
		unit := []string{"s", "m", "h", "d"}[source.IntN(4)]
		rate, burst := 1+source.Int64N(1<<source.Int64N(42)), 1+source.Int64N(1<<source.Int64N(50))
		one := source.Int64N(100)
		cut, kept, two := source.Int64N(100), source.Int64N(100), source.Int64N(101-one)
		if source.IntN(2) == 0 {
			rate, cut, kept, one, two = rate*1000, cut/10*10, kept/10*10, one/10*10, two/10*10
		}
		more := fmt.Sprintf(`"shares": {"a": "%d%%", "b": "%d%%"}`, one, two)
		if cut > 0 {
			more += fmt.Sprintf(`, "headroom": "%d%%"`, cut)
		}
		if kept > 0 {
			more += fmt.Sprintf(`, "reserved": {"c": "%d%%"}`, kept)
		}
		text := sharedBucket(fmt.Sprintf(`{"rate": "%d/%s", "burst": %d}`, rate, unit, burst), more)
		c, err := Parse([]byte(doc("identity", `{"class": {"header": "x", "one_of": ["a", "b", "c"], "default": "a"}}`, "limits", text)), env)
		if err != nil {
			continue
		}
		passed++
		p := c.Limits[0].Pool
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		whole := big.NewRat(rate*(100-cut), 100*units[unit])
		part := func(of *big.Rat, percent int64) *big.Rat { return new(big.Rat).Mul(of, big.NewRat(percent, 100)) }
		free := part(whole, 100-kept)
		want := map[string]*big.Rat{"a": part(free, one), "b": part(free, two), "c": part(whole, kept), "whole": whole}
		got, bursts := map[string]bucket.Amount{"whole": p.Rate}, p.Burst
		for _, s := range p.Shares {
			got[s.Name] = s.Rate
			if s.Rate < 1 || s.Burst < 1 {
				t.Fatalf("%s: %s has nothing", text, s.Name)
			}
			if s.Reserved {
				got["whole"], bursts = got["whole"]+s.Rate, bursts+s.Burst
			}
		}
		// How long a period is at least, if a longer one isn't taken: a day, or what the product of rate
		// and period allows.
		perMilli := float64(rate) / float64(units[unit])
		period := min(float64(bucket.MaxPer), math.Sqrt(bucket.MaxAmount/perMilli)) / 2
		same := true
		for name, rate := range got {
			off := new(big.Rat).Sub(want[name], big.NewRat(int64(rate), int64(p.Per)))
			if far, _ := off.Float64(); math.Abs(far) > 2/period || name == "whole" && far < 0 {
				t.Fatalf("%s: %s is off by %v", text, name, off)
			}
			same = same && off.Sign() == 0
		}
		if most := max(burst*(100-cut)/100, 1); int64(bursts) != most {
			t.Fatalf("%s: bursts of %d, of %d", text, bursts, most)
		}
		if same {
			exact++
		} else if k := smallest(rate, units[unit], want); k != 0 {
			t.Fatalf("%s: %s, but a period %d times as long makes it exact", text, figures(c.Limits[0]), k)
		}
	}
	if passed < 300 || exact < passed/3 {
		t.Errorf("%d divisions, %d of them exact", passed, exact)
	}
}

// smallest tries by how much the reduced period must be longer for exact figures; 0 if a store
// doesn't take that.
func smallest(rate, per int64, want map[string]*big.Rat) int64 {
	r, m := bucket.ReduceRate(bucket.Amount(rate), bucket.Millis(per))
	for k := int64(1); k*int64(m) <= int64(bucket.MaxPer) && k <= 1_000_000 && k*k <= bucket.MaxAmount/(int64(r)*int64(m)); k++ {
		whole := true
		for _, w := range want {
			whole = whole && new(big.Rat).Mul(w, big.NewRat(k*int64(m), 1)).IsInt()
		}
		if whole {
			return k
		}
	}
	return 0
}
