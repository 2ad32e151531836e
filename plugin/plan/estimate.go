package plan

import (
	"math/bits"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// output is the most that a call may produce: the cap that it asks for, or guess where it
// asks for none, never above what the model can do, for each of n answers.
func output(m *config.Model, f dialect.Facts, guess, in bucket.Tokens, how Method) bucket.Tokens {
	each := guess
	if f.HasMaxOutput {
		each = bucket.Tokens(f.MaxOutput)
		if each <= 0 { // asks for nothing that a provider would do: take what the model might
			each = max(m.MaxOutput, m.DefaultOutput)
		}
	}
	if m.MaxOutput > 0 {
		each = min(each, m.MaxOutput)
	}
	if room := left(m, in, how); room > 0 {
		each = min(each, room)
	}
	return times(each, max(f.N, 1))
}

// left is what a model's context leaves for an answer, or 0 where that tells nothing. An estimate
// of the input may be too high, so its usual error is taken off first.
func left(m *config.Model, in bucket.Tokens, how Method) bucket.Tokens {
	if m.Context == 0 || in > m.Context {
		return 0
	}
	e := how.doubt(m.Encoding)
	over := in/1000*e + in%1000*e/1000
	return min(m.Context-in+over, m.Context)
}

// capped is n between 0 and bucket.MaxAmount.
func capped(n bucket.Tokens) bucket.Tokens {
	return min(max(n, 0), bucket.MaxAmount)
}

// plus is the sum, at most bucket.MaxAmount; two capped numbers can't overflow.
func plus(a, b bucket.Tokens) bucket.Tokens {
	return capped(capped(a) + capped(b))
}

// times is the product, at most bucket.MaxAmount.
func times(a bucket.Tokens, n int64) bucket.Tokens {
	hi, lo := bits.Mul64(uint64(capped(a)), uint64(max(n, 0)))
	if hi != 0 || lo > bucket.MaxAmount {
		return bucket.MaxAmount
	}
	return bucket.Tokens(lo)
}
