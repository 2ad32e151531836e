package bucket

import (
	"strconv"
	"time"
)

// Unit is the length of a calendar period.
type Unit uint8

const (
	Hour Unit = iota + 1
	Day
	Week
	Month
	Quarter
	Year
)

// String is the unit's name in the configuration.
func (u Unit) String() string {
	switch u {
	case Hour:
		return "hour"
	case Day:
		return "day"
	case Week:
		return "week"
	case Month:
		return "month"
	case Quarter:
		return "quarter"
	case Year:
		return "year"
	}
	return "unit " + strconv.Itoa(int(u))
}

// Calendar cuts time into periods as people of one time zone count them.
type Calendar struct {
	Unit Unit
	Zone *time.Location // nil is UTC
	// Starts is where a period begins: the day of the month (in a month without it, the last day);
	// of a week, 1 = Monday to 7; of a quarter or year, its first month. 0 is 1. Hours and days
	// have none.
	Starts int
}

// Period names the calendar in a key: unit, zone, and the start where it is not the usual one.
func (c Calendar) Period() string {
	zone := "UTC"
	if c.Zone != nil {
		zone = c.Zone.String()
	}
	name := c.Unit.String() + "@" + zone
	if c.Unit >= Week && c.Starts > 1 {
		name += "/" + strconv.Itoa(c.Starts)
	}
	return name
}

// Bounds are the starts of the previous, the current and the next period and of the one after.
// They are strictly ascending, and Bounds[1] <= now < Bounds[2]. A day begins at its first
// instant, which is not 00:00 where the clock is put forward at midnight; a day that a zone left
// out is no period. now is a Unix time of the years 1 to 9000.
func (c Calendar) Bounds(now Millis) [4]Millis {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	local := time.UnixMilli(int64(now)).In(zone)
	if c.Unit == Hour {
		return hours(local)
	}
	// The period that the local date lies in is at most one away from 0: an anchor may lie later
	// in it than the date. Two more on each side, and one for a day that was left out.
	var starts [9]Millis
	n := 0
	for i := -4; i <= 4; i++ {
		at := c.start(local, i)
		if n == 0 || at > starts[n-1] {
			starts[n] = at
			n++
		}
	}
	current := 1
	for current+3 < n && starts[current+1] <= now {
		current++
	}
	return [4]Millis(starts[current-1 : current+3])
}

// start is the first instant of the period that is n away from the one around t's date, give or
// take one.
func (c Calendar) start(t time.Time, n int) Millis {
	year, month, day := t.Date()
	anchor := max(c.Starts, 1)
	switch c.Unit {
	case Week:
		back := (int(t.Weekday()) - anchor%7 + 7) % 7
		day += 7*n - back
	case Month:
		first := time.Date(year, month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
		year, month, _ = first.Date()
		day = min(anchor, first.AddDate(0, 1, -1).Day())
	case Quarter:
		back := (int(month) - anchor + 12) % 3
		month, day = month-time.Month(back)+time.Month(3*n), 1
	case Year:
		year, month, day = year+n, time.Month(anchor), 1
	default:
		day += n
	}
	return dayBegins(year, month, day, t.Location())
}

// dayBegins is the first instant of a day, which need not be a normal date: day 0 is the last of
// the month before.
func dayBegins(year int, month time.Month, day int, zone *time.Location) Millis {
	// As wall clocks go, with any offset: seconds since 1970 without a zone. Offsets lie between -12
	// and +14 hours, so midnight and every change that matters to it lie between these two.
	wall := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
	early, late := wall-18*3600, wall+18*3600
	before, after := offset(early, zone), offset(late, zone)
	midnight := wall - before
	if before != after {
		if change := changeOf(early, late, zone); midnight >= change {
			midnight = max(wall-after, change) // put forward over midnight, the day begins at the change
		}
	}
	return Millis(midnight * 1000)
}

// hours are pieces of time with one local hour and one offset: where a clock changes within an
// hour, as on Lord Howe Island, the change begins a period.
func hours(now time.Time) [4]Millis {
	zone := now.Location()
	current := hourBegins(now.Unix(), zone)
	next := hourEnds(current, zone)
	return [4]Millis{
		Millis(hourBegins(current-1, zone) * 1000),
		Millis(current * 1000),
		Millis(next * 1000),
		Millis(hourEnds(next, zone) * 1000),
	}
}

func fullHour(at int64, zone *time.Location) int64 {
	past := (at + offset(at, zone)) % 3600
	return at - (past+3600)%3600
}

func hourBegins(at int64, zone *time.Location) int64 {
	full := fullHour(at, zone)
	if offset(full, zone) != offset(at, zone) {
		return changeOf(full, at, zone)
	}
	return full
}

func hourEnds(at int64, zone *time.Location) int64 {
	end := fullHour(at, zone) + 3600
	if offset(end-1, zone) != offset(at, zone) {
		return changeOf(at, end-1, zone)
	}
	return end
}

func offset(at int64, zone *time.Location) int64 {
	_, seconds := time.Unix(at, 0).In(zone).Zone()
	return int64(seconds)
}

// changeOf is the first second after early whose offset is not early's; late's is not. It halves,
// because time.ZoneBounds of Go 1.26 says the wrong thing on the last day of a southern leap year
// beyond a zone's table (Lord Howe Island, 2040-12-31).
func changeOf(early, late int64, zone *time.Location) int64 {
	before := offset(early, zone)
	for late-early > 1 {
		if mid := early + (late-early)/2; offset(mid, zone) == before {
			early = mid
		} else {
			late = mid
		}
	}
	return late
}
