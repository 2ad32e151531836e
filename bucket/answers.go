package bucket

// Answer is the length of an answer that nothing capped, for the store to learn from.
type Answer struct {
	Of     string // whose: free text that stands for a tenant and a model; the store makes it safe for a key
	Tokens Tokens // of one answer; 0: there is nothing to learn, and Of is not looked at
}

// What a store keeps of answers, for each Of: how many had which length, by day of Unix time and in
// steps of at most an eighth. From LeastAnswers on it tells AnswersPart of a hundred, the length that so
// many of a hundred answers of the last AnswerDays days did not exceed; between two steps it takes the
// answers to lie evenly. It looks at all days anew on the first answer of a day and whenever a
// sixteenth of what it had seen by then has come. A day in which one step has counted mostOfStep
// answers is halved, so that its size is bounded; it then weighs less beside the other days.
const (
	LeastAnswers         = 20
	AnswersPart          = 95
	AnswerDays           = 7
	LongestAnswer        = 1 << 20 // tokens; what is longer counts as this
	AnswerDay     Millis = 86_400_000

	mostOfStep = 999
)

// answers is what a store has learned for one Of, told in the plainest way.
type answers struct {
	day   Millis // of the latest answer
	wait  int    // answers until told is found anew
	told  Tokens
	steps []Tokens // the longest answer of each step, ascending
	days  map[Millis][]int
}

func newAnswers() *answers {
	a := &answers{day: -1, days: map[Millis][]int{}}
	for n := Tokens(1); n <= 16; n++ {
		a.steps = append(a.steps, n)
	}
	for width := Tokens(2); a.steps[len(a.steps)-1] < LongestAnswer; width *= 2 {
		for range 8 {
			a.steps = append(a.steps, a.steps[len(a.steps)-1]+width)
		}
	}
	return a
}

// learn counts an answer and says what is told then; 0 is nothing yet.
func (a *answers) learn(now Millis, tokens Tokens) Tokens {
	day := max(now/AnswerDay, a.day)
	if day != a.day {
		a.day, a.wait = day, 0
	}
	for old := range a.days {
		if old <= day-AnswerDays {
			delete(a.days, old)
		}
	}
	if a.days[day] == nil {
		a.days[day] = make([]int, len(a.steps))
	}
	count := a.days[day]
	step := 0
	for a.steps[step] < min(tokens, LongestAnswer) {
		step++
	}
	if count[step]++; count[step] > mostOfStep {
		odd := 0
		for i := range count { // what an odd step loses goes to the next
			n := count[i] + odd
			count[i], odd = n/2, n%2
		}
	}
	if a.wait--; a.wait <= 0 {
		a.look()
	}
	return a.told
}

func (a *answers) look() {
	sum, total := make([]int, len(a.steps)), 0
	for _, count := range a.days {
		for i, n := range count {
			sum[i], total = sum[i]+n, total+n
		}
	}
	a.wait, a.told = LeastAnswers-total, 0
	if total < LeastAnswers {
		return
	}
	a.wait = max(1, total/16)
	rank := (total*AnswersPart + 99) / 100 // of the answer told, counted from 1
	var from Tokens
	for i, n := range sum {
		if rank <= n {
			a.told = from + ((a.steps[i]-from)*Tokens(rank)+Tokens(n)-1)/Tokens(n)
			return
		}
		rank, from = rank-n, a.steps[i]
	}
}
