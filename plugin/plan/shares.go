package plan

import "github.com/emmer-proxy/emmer/bucket"

// ofClass ends a figure of a message with whom it is for, where a limit is divided among classes.
func ofClass(l *bucket.Limit) string {
	if l.Kind != bucket.SharedBucket || l.Share == "" {
		return ""
	}
	return " for class " + shown(l.Share)
}

// refill is how fast a class gets back what it can have at the most: what it owns refills at least
// so fast, and then the spare by what overflows. A class with nothing of its own waits for the others'
// overflow, which is the whole's rate at best.
func refill(l *bucket.Limit) (bucket.Amount, bucket.Millis) {
	if l.Kind != bucket.SharedBucket {
		return l.Rate, l.Per
	}
	for _, s := range l.Pool.Shares {
		if s.Name == l.Share && s.Rate > 0 {
			return s.Rate, l.Pool.Per
		}
	}
	return l.Pool.Rate, l.Pool.Per
}
