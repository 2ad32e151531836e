package dialect

import "github.com/emmer-proxy/emmer/bucket"

// usageRecord is what one or more usage records say. Its fields are those of Usage.
type usageRecord struct {
	seen                                 bool
	early                                bool // all of it is from before the answer
	apart                                bool // fresh and the three parts of the cache are told apart: input is their sum
	fresh                                int64
	input, cached, write, hour, heard    int64
	output, reasoning, spoken            int64
	units, images, searches, audioMillis int64
}

// maxUsage bounds a figure that can be true: 2^40 tokens.
const maxUsage = 1 << 40

// merge takes the larger of each figure: records are cumulative, so they repeat and are never
// added; the first may only mark the place, the last may only carry details. Of an input that is told
// in parts, each is the last that isn't 0: what one record puts down as fresh, a later one may have
// found in the cache.
func (u *usageRecord) merge(v usageRecord) {
	u.early = v.early && (u.early || !u.seen)
	u.seen = true
	parts := [...]*int64{&u.fresh, &u.cached, &u.write, &u.hour}
	last := [len(parts)]int64{u.fresh, u.cached, u.write, u.hour}
	for _, f := range [...]struct {
		to *int64
		v  int64
	}{
		{&u.input, v.input}, {&u.cached, v.cached}, {&u.write, v.write}, {&u.hour, v.hour}, {&u.heard, v.heard},
		{&u.output, v.output}, {&u.reasoning, v.reasoning}, {&u.spoken, v.spoken},
		{&u.units, v.units}, {&u.images, v.images}, {&u.searches, v.searches}, {&u.audioMillis, v.audioMillis},
	} {
		*f.to = max(*f.to, f.v)
	}
	if !v.apart {
		return
	}
	u.apart, u.input = true, 0
	for i, n := range [len(parts)]int64{v.fresh, v.cached, v.write, v.hour} {
		if n == 0 {
			n = last[i]
		}
		*parts[i] = n
		u.input += n
	}
}

// empty says that nothing was used, which no call that was answered can say.
func (u *usageRecord) empty() bool {
	return u.input == 0 && u.output == 0 && u.units == 0 && u.images == 0 && u.audioMillis == 0
}

func (u *usageRecord) figures() Usage {
	in, out := bucket.Tokens(u.input), bucket.Tokens(u.output)
	part := func(n int64, of bucket.Tokens) bucket.Tokens { return min(bucket.Tokens(n), of) }
	return Usage{
		Input: in, CachedInput: part(u.cached, in), CacheWrite: part(u.write, in), CacheHour: part(u.hour, in), AudioInput: part(u.heard, in),
		Output: out, Reasoning: part(u.reasoning, out), AudioOutput: part(u.spoken, out),
		SearchUnits: u.units, Images: u.images, Searches: u.searches, AudioMillis: bucket.Millis(u.audioMillis),
	}
}
