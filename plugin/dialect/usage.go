package dialect

import "github.com/emmer-proxy/emmer/bucket"

// usageRecord is what one or more usage records say. Its fields are those of Usage.
type usageRecord struct {
	seen                                 bool
	early                                bool // all of it is from before the answer
	apart                                bool // fresh, cached and written are told apart: input is their sum
	fresh, written                       int64
	input, cached, write, hour, heard    int64
	output, reasoning, spoken            int64
	units, images, searches, audioMillis int64
	toolInput, toolOutput                int64 // of another model that the provider's tools asked; not in input and output
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
	cached := u.cached
	for _, f := range [...]struct {
		to *int64
		v  int64
	}{
		{&u.input, v.input}, {&u.cached, v.cached}, {&u.write, v.write}, {&u.hour, v.hour}, {&u.heard, v.heard},
		{&u.output, v.output}, {&u.reasoning, v.reasoning}, {&u.spoken, v.spoken},
		{&u.units, v.units}, {&u.images, v.images}, {&u.searches, v.searches}, {&u.audioMillis, v.audioMillis},
		{&u.toolInput, v.toolInput}, {&u.toolOutput, v.toolOutput},
	} {
		*f.to = max(*f.to, f.v)
	}
	if !v.apart {
		return
	}
	u.apart = true
	u.fresh, u.written = last(u.fresh, v.fresh), last(u.written, v.written)
	u.cached = last(cached, v.cached)
	u.hour = min(u.hour, u.written)
	u.write = u.written - u.hour
	u.input = u.fresh + u.cached + u.written
}

func last(before, now int64) int64 {
	if now == 0 {
		return before
	}
	return now
}

// empty says that nothing was used, which no call that was answered can say.
func (u *usageRecord) empty() bool {
	return u.input == 0 && u.output == 0 && u.units == 0 && u.images == 0 && u.audioMillis == 0
}

func (u *usageRecord) figures() Usage {
	in, out := bucket.Tokens(u.input+u.toolInput), bucket.Tokens(u.output+u.toolOutput)
	part := func(n int64, of bucket.Tokens) bucket.Tokens { return min(bucket.Tokens(n), of) }
	return Usage{
		Input: in, CachedInput: part(u.cached, in), CacheWrite: part(u.write, in), CacheHour: part(u.hour, in), AudioInput: part(u.heard, in),
		Output: out, Reasoning: part(u.reasoning, out), AudioOutput: part(u.spoken, out),
		SearchUnits: u.units, Images: u.images, Searches: u.searches, AudioMillis: bucket.Millis(u.audioMillis),
	}
}
