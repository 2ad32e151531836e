package buckettest

import (
	"time"
	_ "time/tzdata" // the same zones on every machine

	"github.com/emmer-proxy/emmer/bucket"
)

// calendarCases fill a period at a moment in it, and see that it is full up to its last millisecond
// and empty from the next: on days that are longer or shorter, and with anchors that a month lacks.
func calendarCases() []testCase {
	var cases []testCase
	for _, c := range []struct {
		name   string
		unit   bucket.Unit
		zone   string
		starts int
		now    string
		ends   string
	}{
		{"a day of 23 hours", bucket.Day, "Europe/Amsterdam", 0, "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"a day of 25 hours", bucket.Day, "Europe/Amsterdam", 0, "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"an hour before the clock goes forward", bucket.Hour, "Europe/Amsterdam", 0, "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"the first of two equal hours", bucket.Hour, "Europe/Amsterdam", 0, "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00"},
		{"the second of two equal hours", bucket.Hour, "Europe/Amsterdam", 0, "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"},
		{"half an hour, where the clock moves by so much", bucket.Hour, "Australia/Lord_Howe", 0, "2026-10-04T01:30:00+10:30", "2026-10-04T02:30:00+11:00"},
		{"a day that has no midnight", bucket.Day, "America/Sao_Paulo", 0, "2018-11-04T12:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		{"the day before one without midnight", bucket.Day, "America/Sao_Paulo", 0, "2018-11-03T23:30:00-03:00", "2018-11-04T01:00:00-02:00"},
		{"the day before one that was left out", bucket.Day, "Pacific/Apia", 0, "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"a day with quarters of an hour", bucket.Day, "Asia/Kathmandu", 0, "2026-05-05T23:59:59+05:45", "2026-05-06T00:00:00+05:45"},
		{"the 29th of February", bucket.Day, "UTC", 0, "2028-02-29T10:00:00Z", "2028-03-01T00:00:00Z"},
		{"February of a leap year", bucket.Month, "UTC", 0, "2028-02-28T23:59:59Z", "2028-03-01T00:00:00Z"},
		{"a month from the 29th, in a leap year", bucket.Month, "UTC", 29, "2028-02-28T10:00:00Z", "2028-02-29T00:00:00Z"},
		{"a month from the 29th, in another year", bucket.Month, "UTC", 29, "2027-02-27T10:00:00Z", "2027-02-28T00:00:00Z"},
		{"a month from the 31st, before one of 28 days", bucket.Month, "Europe/Amsterdam", 31, "2026-02-01T00:00:00+01:00", "2026-02-28T00:00:00+01:00"},
		{"a month from the 31st, out of one of 28 days", bucket.Month, "Europe/Amsterdam", 31, "2026-02-28T00:00:00+01:00", "2026-03-31T00:00:00+02:00"},
		{"a month from the 31st, before one of 30 days", bucket.Month, "America/New_York", 31, "2026-04-29T23:00:00-04:00", "2026-04-30T00:00:00-04:00"},
		{"a month from the 15th", bucket.Month, "Europe/Amsterdam", 15, "2026-06-14T23:59:59+02:00", "2026-06-15T00:00:00+02:00"},
		{"C103: a month ends, it doesn't begin", bucket.Month, "UTC", 0, "2031-04-25T12:00:00Z", "2031-05-01T00:00:00Z"},
		{"C104: a day that has just begun", bucket.Day, "UTC", 0, "2031-04-25T00:00:00Z", "2031-04-26T00:00:00Z"},
		{"a week over the new year", bucket.Week, "UTC", 0, "2026-12-31T12:00:00Z", "2027-01-04T00:00:00Z"},
		{"a week from Sunday, over a change of the clock", bucket.Week, "America/New_York", 7, "2026-03-08T01:00:00-05:00", "2026-03-15T00:00:00-04:00"},
		{"a quarter from February", bucket.Quarter, "UTC", 2, "2026-04-30T23:59:59Z", "2026-05-01T00:00:00Z"},
		{"a year from April", bucket.Year, "Asia/Kolkata", 4, "2026-03-31T23:59:59+05:30", "2026-04-01T00:00:00+05:30"},
		{"a year of 366 days", bucket.Year, "UTC", 0, "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z"},
	} {
		cases = append(cases, testCase{"calendar/" + c.name, func(f *fixture) {
			zone, err := time.LoadLocation(c.zone)
			f.must(err)
			calendar := bucket.Calendar{Unit: c.unit, Zone: zone, Starts: c.starts}
			now, ends := f.moment(c.now), f.moment(c.ends)
			f.clock.SetTime(now)
			w := bucket.Limit{Name: "w", Entity: "e", Kind: bucket.CalendarWindow, Period: calendar.Period(), Max: 100, Lost: bucket.Charge}
			at := func(t bucket.Millis) bucket.Limit {
				w.Bounds = calendar.Bounds(t)
				return w
			}
			f.reserve(short(f.id(), each(100, at(now))), bucket.Granted)
			for _, t := range []bucket.Millis{now, ends - 1} {
				f.clock.SetTime(t)
				r := f.reserve(short(f.id(), each(1, at(t))), bucket.Denied)
				if r.Now+r.Retry != ends {
					f.Errorf("retry at %s, want %s", time.UnixMilli(int64(r.Now+r.Retry)).In(zone), c.ends)
				}
			}
			f.clock.SetTime(ends)
			f.left(f.reserve(short(f.id(), each(100, at(ends))), bucket.Granted).Remaining, 0)
			// A gateway whose clock is behind still sends the bounds of the period before.
			f.left(f.reserve(short(f.id(), each(1, at(now))), bucket.Denied).Remaining, 0)
		}})
	}
	return cases
}

// moment reads a time.
func (f *fixture) moment(text string) bucket.Millis {
	f.Helper()
	t, err := time.Parse(time.RFC3339, text)
	f.must(err)
	return bucket.Millis(t.UnixMilli())
}
