package bucket

import (
	"errors"
	"strconv"
)

// MaxPer is the longest Per of a bucket: a day. Its square stays below 2^53, which keeps the
// conversion of a level from one Per to another exact in Redis' Lua.
const MaxPer Millis = 86_400_000

const (
	maxCells   = 120 // of a rolling window: a script reads them all
	maxMinutes = 30  // of a burn rule
	// MaxSlots bounds what a Concurrency counts.
	MaxSlots = 1<<31 - 1
)

// Span is the part of a key that says what a limit's state is cut into: the Period of a calendar
// window, length and cell of a rolling one.
func (l *Limit) Span() string {
	if l.Kind == RollingWindow {
		return strconv.FormatInt(int64(l.Window), 10) + "." + strconv.FormatInt(int64(l.Cell), 10)
	}
	return l.Period
}

// Check says what keeps a store from carrying out the limit, or nil. A name and an entity may be
// any text. The error begins with the field, in lower case.
func (l Limit) Check() error {
	if l.Lost > Charge {
		return errors.New("lost: unknown value " + strconv.Itoa(int(l.Lost)))
	}
	switch l.Kind {
	case TokenBucket:
		if err := within("rate", int64(l.Rate), 1, MaxAmount); err != nil {
			return err
		}
		if err := within("per", int64(l.Per), 1, int64(MaxPer)); err != nil {
			return err
		}
		if err := within("burst", int64(l.Burst), 0, MaxAmount); err != nil {
			return err
		}
		if (wide{0, MaxAmount}).less(product(uint64(l.Rate), uint64(l.Per))) {
			return errors.New("rate: times its period in milliseconds it is above 2^53-1; choose one with a larger common divisor")
		}
		return nil
	case CalendarWindow:
		if err := within("max", int64(l.Max), 0, MaxAmount); err != nil {
			return err
		}
		for i, at := range l.Bounds {
			if err := within("bounds", int64(at), 0, MaxAmount/8); err != nil {
				return err
			}
			if i > 0 && at <= l.Bounds[i-1] {
				return errors.New("bounds: not in ascending order")
			}
		}
		return nil
	case RollingWindow:
		if err := within("max", int64(l.Max), 0, MaxAmount); err != nil {
			return err
		}
		if err := within("cell", int64(l.Cell), 1, int64(MaxPer)); err != nil {
			return err
		}
		if err := within("window", int64(l.Window), int64(l.Cell), int64(maxCells*l.Cell)); err != nil {
			return err
		}
		if l.Window%l.Cell != 0 {
			return errors.New("window: not a multiple of its cell")
		}
		return nil
	case Concurrency:
		return within("max", int64(l.Max), 0, MaxSlots)
	case Burn:
		if err := within("max", int64(l.Max), 0, MaxAmount); err != nil {
			return err
		}
		if l.Rule == nil {
			return errors.New("rule: missing")
		}
		if err := within("minutes", int64(l.Rule.Minutes), 1, maxMinutes); err != nil {
			return err
		}
		if l.Flag == "" {
			return errors.New("flag: empty")
		}
		return within("for", int64(l.Rule.For), 0, MaxAmount/8)
	case SharedBucket:
		if l.Pool == nil {
			return errors.New("pool: missing")
		}
		return l.Pool.Check()
	}
	return errors.New("kind: unknown value " + strconv.Itoa(int(l.Kind)))
}

func within(field string, v, least, most int64) error {
	if v < least || v > most {
		return errors.New(field + ": " + strconv.FormatInt(v, 10) + " is not between " +
			strconv.FormatInt(least, 10) + " and " + strconv.FormatInt(most, 10))
	}
	return nil
}

// ReduceRate divides a rate and its period by their greatest common divisor, as Limit wants them.
func ReduceRate(rate Amount, per Millis) (Amount, Millis) {
	a, b := int64(rate), int64(per)
	for b != 0 {
		a, b = b, a%b
	}
	if a > 1 {
		return rate / Amount(a), per / Millis(a)
	}
	return rate, per
}
