package bucket

import "testing"

func TestOverride(t *testing.T) {
	for _, tt := range []struct {
		kind  Kind
		value string
		want  Override
		ok    bool
	}{
		{CalendarWindow, "150|0", Override{Max: 150}, true},
		{RollingWindow, "9007199254740991|1900000000000", Override{Max: MaxAmount, Until: 1_900_000_000_000}, true},
		{Concurrency, "2147483647|0", Override{Max: MaxSlots}, true},
		{Burn, "0|5", Override{Until: 5}, true},
		{TokenBucket, "100/3/5000|7", Override{Rate: 100, Per: 3, Burst: 5000, Until: 7}, true},
		{TokenBucket, "1/1/0|0", Override{Rate: 1, Per: 1}, true},
		{Concurrency, "2147483648|0", Override{}, false},
		{TokenBucket, "150|0", Override{}, false},
		{CalendarWindow, "100/3/5000|0", Override{}, false},
		{SharedBucket, "150|0", Override{}, false},
		{CalendarWindow, "", Override{}, false},
		{CalendarWindow, "|", Override{}, false},
		{CalendarWindow, "5", Override{}, false},
		{CalendarWindow, "+5|0", Override{}, false},
		{CalendarWindow, "5|-1", Override{}, false},
		{CalendarWindow, "9007199254740992|0", Override{}, false},
		{TokenBucket, "0/1/1|0", Override{}, false},
		{TokenBucket, "1/86400001/1|0", Override{}, false},
		{TokenBucket, "9007199254740991/2/1|0", Override{}, false},
		{TokenBucket, "1/2/3/4|0", Override{}, false},
	} {
		got, err := ParseOverride(tt.kind, tt.value)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v; want %+v", tt.value, got, err, tt.want)
		}
		if err == nil && got.String() != tt.value {
			t.Errorf("%q is written as %q", tt.value, got.String())
		}
	}
}

func FuzzOverride(f *testing.F) {
	for _, s := range []string{"150|0", "100/3/5000|7", "|", "5|x", "0000000000000005|0", "1/2/3/4|0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for kind := TokenBucket; kind <= SharedBucket; kind++ {
			o, err := ParseOverride(kind, value)
			if err != nil {
				continue
			}
			again, err := ParseOverride(kind, o.String())
			if err != nil || again != o {
				t.Fatalf("%q is %+v, written %q, and then %+v, %v", value, o, o.String(), again, err)
			}
		}
	})
}

func TestPoolCheck(t *testing.T) {
	good := func() *Pool {
		return &Pool{Rate: 10, Per: 1000, Burst: 100, Shares: []Share{{Name: "a", Rate: 7, Burst: 70}, {Name: "b", Rate: 3, Burst: 30}, {Name: "r", Rate: 5, Burst: 9, Reserved: true}}}
	}
	for _, tt := range []struct {
		want   string
		change func(*Pool)
	}{
		{"", func(*Pool) {}},
		{"", func(p *Pool) { p.Shares = nil }},
		{"rate: 0", func(p *Pool) { p.Rate = 0 }},
		{"per: 0", func(p *Pool) { p.Per = 0 }},
		{"burst: 562949953421312", func(p *Pool) { p.Burst = MaxPool + 1 }},
		{"shares[1].rate: the shares'", func(p *Pool) { p.Shares[1].Rate = 4 }},
		{"shares[1].burst: the shares'", func(p *Pool) { p.Shares[1].Burst = 31 }},
		{"shares[2].name: stands twice", func(p *Pool) { p.Shares[2].Name = "a" }},
		{"shares[0].name: empty", func(p *Pool) { p.Shares[0].Name = "" }},
		{"shares[2].rate: -1", func(p *Pool) { p.Shares[2].Rate = -1 }},
		{"shares: more than 12", func(p *Pool) { p.Shares = make([]Share, 13) }},
	} {
		p := good()
		tt.change(p)
		err := Limit{Kind: SharedBucket, Pool: p}.Check()
		if (err == nil) != (tt.want == "") || err != nil && err.Error()[:min(len(tt.want), len(err.Error()))] != tt.want {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	p := good()
	for share, want := range map[string]Amount{"a": 70, "r": 9, "none": 0} {
		if got := p.Most(share); got != want {
			t.Errorf("%s: %d, want %d", share, got, want)
		}
	}
}
