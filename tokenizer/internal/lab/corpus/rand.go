package corpus

// Rand is splitmix64: small, good enough for texts, and the same on every version of Go.
type Rand struct{ state uint64 }

// NewRand gives a generator that begins at a seed.
func NewRand(seed uint64) *Rand { return &Rand{seed} }

// Uint64 is the next random number.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Intn is a random number from 0 to n-1; n is at least 1.
func (r *Rand) Intn(n int) int { return int((r.Uint64() >> 32) * uint64(n) >> 32) }

// Chance is true once in n times.
func (r *Rand) Chance(n int) bool { return r.Intn(n) == 0 }

func pickOf(r *Rand, of ...string) string { return of[r.Intn(len(of))] }

// zipf is a word list, the frequent words first: the i-th is drawn about 1/(i+2) as often as the first.
type zipf struct {
	words []string
	upTo  []int // running sum of the weights
}

func newZipf(words []string) zipf {
	z := zipf{words: words, upTo: make([]int, len(words))}
	sum := 0
	for i := range words {
		sum += 1 << 20 / (i + 2)
		z.upTo[i] = sum
	}
	return z
}

func (z zipf) pick(r *Rand) string { return z.words[z.index(r)] }

func (z zipf) index(r *Rand) int {
	x := r.Intn(z.upTo[len(z.upTo)-1])
	lo, hi := 0, len(z.upTo)-1
	for lo < hi {
		if mid := (lo + hi) / 2; z.upTo[mid] > x {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func appendInt(b []byte, n int) []byte {
	if n >= 10 {
		b = appendInt(b, n/10)
	}
	return append(b, '0'+byte(n%10))
}

// appendPadded appends n in at least width digits.
func appendPadded(b []byte, n, width int) []byte {
	for limit := 10; width > 1; width, limit = width-1, limit*10 {
		if n < limit {
			b = append(b, '0')
		}
	}
	return appendInt(b, n)
}

func appendHex(b []byte, r *Rand, digits int) []byte {
	for range digits {
		b = append(b, "0123456789abcdef"[r.Intn(16)])
	}
	return b
}
