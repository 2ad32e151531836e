package bucket

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine
)

func zone(t testing.TB, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestBoundsGolden(t *testing.T) {
	tests := []struct {
		unit   Unit
		zone   string
		starts int
		now    string
		want   [4]string // local times
	}{
		{Hour, "Europe/Amsterdam", 0, "2026-03-29T01:30:00+01:00", [4]string{"2026-03-29T00:00:00+01:00", "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		{Hour, "Asia/Kathmandu", 0, "2026-03-29T01:30:00Z", [4]string{"2026-03-29T06:00:00+05:45", "2026-03-29T07:00:00+05:45", "2026-03-29T08:00:00+05:45", "2026-03-29T09:00:00+05:45"}},
		{Day, "Europe/Amsterdam", 0, "2026-03-29T12:00:00+02:00", [4]string{"2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "2026-03-31T00:00:00+02:00"}},
		{Day, "Europe/Amsterdam", 0, "2026-10-25T02:30:00+01:00", [4]string{"2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-27T00:00:00+01:00"}},
		{Day, "America/Sao_Paulo", 0, "2018-11-03T23:59:59-03:00", [4]string{"2018-11-02T00:00:00-03:00", "2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}}, // no midnight
		{Day, "America/Havana", 0, "2026-11-01T00:30:00-05:00", [4]string{"2026-10-31T00:00:00-04:00", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00", "2026-11-03T00:00:00-05:00"}},    // midnight twice
		{Day, "Pacific/Apia", 0, "2011-12-29T12:00:00-10:00", [4]string{"2011-12-28T00:00:00-10:00", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"}},      // a day left out
		{Week, "Europe/Amsterdam", 0, "2026-11-29T23:59:59+01:00", [4]string{"2026-11-16T00:00:00+01:00", "2026-11-23T00:00:00+01:00", "2026-11-30T00:00:00+01:00", "2026-12-07T00:00:00+01:00"}},
		{Week, "UTC", 7, "2026-11-29T00:00:00Z", [4]string{"2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z", "2026-12-13T00:00:00Z"}},
		{Month, "Europe/Amsterdam", 1, "2031-04-25T10:00:00+02:00", [4]string{"2031-03-01T00:00:00+01:00", "2031-04-01T00:00:00+02:00", "2031-05-01T00:00:00+02:00", "2031-06-01T00:00:00+02:00"}},
		{Month, "UTC", 31, "2027-02-10T00:00:00Z", [4]string{"2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z"}},
		{Month, "UTC", 31, "2027-02-28T00:00:00Z", [4]string{"2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z", "2027-03-31T00:00:00Z", "2027-04-30T00:00:00Z"}},
		{Month, "UTC", 30, "2028-02-29T12:00:00Z", [4]string{"2028-01-30T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-30T00:00:00Z", "2028-04-30T00:00:00Z"}},
		{Month, "UTC", 15, "2026-01-14T23:59:59Z", [4]string{"2025-11-15T00:00:00Z", "2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z", "2026-02-15T00:00:00Z"}},
		{Quarter, "UTC", 0, "2026-11-30T00:00:00Z", [4]string{"2026-07-01T00:00:00Z", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-04-01T00:00:00Z"}},
		{Quarter, "UTC", 2, "2026-01-31T00:00:00Z", [4]string{"2025-08-01T00:00:00Z", "2025-11-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-05-01T00:00:00Z"}},
		{Year, "UTC", 4, "2026-03-31T23:59:59Z", [4]string{"2024-04-01T00:00:00Z", "2025-04-01T00:00:00Z", "2026-04-01T00:00:00Z", "2027-04-01T00:00:00Z"}},
		{Year, "UTC", 0, "2026-01-01T00:00:00Z", [4]string{"2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.unit, tt.zone, tt.starts, tt.now), func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			z := zone(t, tt.zone)
			for i, at := range (Calendar{tt.unit, z, tt.starts}).Bounds(Millis(now.UnixMilli())) {
				if got := time.UnixMilli(int64(at)).In(z).Format(time.RFC3339); got != tt.want[i] {
					t.Errorf("start %d is %s, want %s", i, got, tt.want[i])
				}
			}
		})
	}
}

// label is the reference: a name for the period that a local time lies in, by counting days.
func label(c Calendar, t time.Time) string {
	year, month, day := t.Date()
	anchor := max(c.Starts, 1)
	switch c.Unit {
	case Hour:
		_, offset := t.Zone()
		return t.Format("2006-01-02T15") + fmt.Sprint(offset)
	case Week:
		for int(t.Weekday()) != anchor%7 {
			t = time.Date(t.Year(), t.Month(), t.Day()-1, 12, 0, 0, 0, time.UTC)
		}
		return t.Format("2006-01-02")
	case Month:
		last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if day < min(anchor, last) {
			return fmt.Sprint(int(month)+12*year-1, "m")
		}
		return fmt.Sprint(int(month)+12*year, "m")
	case Quarter:
		for (int(month)-anchor+12)%3 != 0 {
			if month--; month == 0 {
				year, month = year-1, 12
			}
		}
		return fmt.Sprint(year, int(month))
	case Year:
		if int(month) < anchor {
			year--
		}
		return fmt.Sprint(year)
	}
	return t.Format("2006-01-02")
}

func TestBoundsAgreeWithCounting(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	zones := []string{"UTC", "Europe/Amsterdam", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "America/Havana",
		"Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "America/Santiago", "Pacific/Kiritimati", "Africa/Casablanca"}
	for range 40_000 {
		c := Calendar{Unit(1 + r.Intn(6)), zone(t, zones[r.Intn(len(zones))]), 0}
		switch c.Unit {
		case Week:
			c.Starts = r.Intn(8)
		case Month:
			c.Starts = r.Intn(32)
		case Quarter, Year:
			c.Starts = r.Intn(13)
		}
		now := Millis(946_684_800_000 + r.Int63n(45*365*86_400_000))
		if r.Intn(2) == 0 { // near a change of the offset
			if _, end := time.UnixMilli(int64(now)).In(c.Zone).ZoneBounds(); !end.IsZero() {
				now = Millis(end.UnixMilli()) + Millis(r.Int63n(7200_000)-3600_000)
			}
		}
		b := c.Bounds(now)
		at := func(m Millis) string { return label(c, time.UnixMilli(int64(m)).In(c.Zone)) }
		names := [4]string{at(b[0]), at(b[1]), at(b[2]), at(b[3])}
		if b[1] > now || now >= b[2] || at(now) != names[1] {
			t.Fatalf("%v %s at %d: bounds %v, labels %v, now %s", c, c.Period(), now, b, names, at(now))
		}
		for i := 1; i < 4; i++ {
			if b[i] <= b[i-1] || names[i] == names[i-1] || at(b[i]-1) != names[i-1] {
				t.Fatalf("%v %s at %d: bounds %v, labels %v, before %d %s", c, c.Period(), now, b, names, i, at(b[i]-1))
			}
		}
	}
}

func TestPeriodNames(t *testing.T) {
	for want, c := range map[string]Calendar{
		"month@Europe/Amsterdam":    {Month, zone(t, "Europe/Amsterdam"), 1},
		"month@Europe/Amsterdam/15": {Month, zone(t, "Europe/Amsterdam"), 15},
		"day@UTC":                   {Day, nil, 3},
		"week@UTC/7":                {Week, nil, 7},
	} {
		if got := c.Period(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
