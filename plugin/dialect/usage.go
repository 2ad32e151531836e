package dialect

import "github.com/emmer-proxy/emmer/bucket"

// usageRecord is what one or more usage records say. Its fields are those of Usage.
type usageRecord struct {
	seen                                 bool
	input, cached, write, hour, heard    int64
	output, reasoning, spoken            int64
	units, images, searches, audioMillis int64
}

// maxUsage bounds a figure that can be true: 2^40 tokens.
const maxUsage = 1 << 40

// merge takes the larger of each figure: records are cumulative, so they repeat and are never
// added; the first may only mark the place, the last may only carry details.
func (u *usageRecord) merge(v usageRecord) {
	u.seen = true
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
