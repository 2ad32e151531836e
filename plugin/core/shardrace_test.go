package core

import (
	"math/rand/v2"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
)

// shardModel is one shard of a store, as far as one reservation goes.
type shardModel struct {
	held, settled bool
	booked        bucket.Amount // by the one that counts, of the first limit
}

// reserve runs a reserve, and says what it answers.
func (m *shardModel) reserve(can bool) bucket.Outcome {
	switch {
	case m.settled:
		return bucket.Settled
	case m.held:
		return bucket.Replayed
	case !can:
		return bucket.Denied
	}
	m.held = true
	return bucket.Granted
}

func (m *shardModel) settle(j *Job) {
	if !m.settled {
		m.booked = j.Items[0].Amount
	}
	m.held, m.settled = false, true
}

// TestTwoShardsAtRandom lets the calls of one exchange arrive in any order, late or never, their answers
// get lost, and the exchange end, be cut off or meet a fault at any time. Whatever happens: the client
// has at most one answer, a call goes upstream only if both shards hold its amounts or may do without, and in
// the end no shard holds anything: it was settled there once, with nothing for a call that didn't pass.
func TestTwoShardsAtRandom(t *testing.T) {
	passed, refused, cut := 0, 0, 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		policies := []string{"closed", "open", "local"}
		all, own := policies[r.IntN(3)], policies[r.IntN(3)]
		open := []bool{all != "closed", own != "closed"}
		w := newSharded(t, all, own)
		s := w.NewStream(seed)
		shards := []shardModel{{}, {}}
		can := []bool{r.IntN(4) > 0, r.IntN(4) > 0}
		var calls []StoreCall // sent, not yet run at the store
		var late []uint64     // given up by the gateway, to run at the store some time
		var jobs []*Job
		told := map[*Job]bool{}
		answers, resumes, forwarded := 0, 0, false
		granted := []bool{false, false} // as the gateway was told
		apply := func(fx []Effect) {
			for _, f := range fx {
				switch f.Kind {
				case Answer:
					answers++
				case ResumeRequest, ResumeGate:
					resumes++
				case Call:
					calls = append(calls, *f.Call)
				case Tell:
					if f.Event.Kind == Settle && !told[f.Event.Job] {
						told[f.Event.Job] = true
						jobs = append(jobs, f.Event.Job)
					}
					w.Step(*f.Event)
				}
			}
			if s.State() == Forwarded && !forwarded {
				forwarded = true
				for i := range granted {
					if !granted[i] && !open[i] {
						t.Fatalf("seed %d: went upstream without shard %d", seed, i)
					}
				}
			}
		}
		now := bucket.Millis(1002)
		apply(s.Step(ofOrg("acme")))
		apply(s.Step(bodyEvent(chat)))
		over := false
		for range 3 + r.IntN(12) {
			now += bucket.Millis(r.IntN(30))
			e := Event{Now: now}
			switch k := r.IntN(14); {
			case k < 7 && len(calls) > 0:
				i := r.IntN(len(calls))
				c := calls[i]
				calls = append(calls[:i], calls[i+1:]...)
				at := int(c.Tag)
				switch r.IntN(8) {
				case 0:
					e = storeFails(now, c.Tag, callout.NoScript)
				case 1:
					e = storeFails(now, c.Tag, callout.Unsent)
				case 2: // it runs, and its answer is lost
					shards[at].reserve(can[at])
					e = storeFails(now, c.Tag, callout.Unavailable)
				case 3: // it runs after its time
					late = append(late, c.Tag)
					e = storeFails(now, c.Tag, callout.Unavailable)
				default:
					outcome := shards[at].reserve(can[at])
					e = answerOf(&s.parts[at], outcome)
					e.Now, e.Tag = now, c.Tag
					granted[at] = granted[at] || s.State() == Deciding && outcome <= bucket.Replayed
				}
				if over {
					continue // the host tells an exchange that ended nothing
				}
			case k == 7 && len(late) > 0:
				shards[late[0]].reserve(can[late[0]])
				late = late[1:]
				continue
			case k == 8 && len(jobs) > 0: // settlements arrive in any order, also twice
				j := jobs[r.IntN(len(jobs))]
				shards[shardOf(j)].settle(j)
				continue
			case k == 9:
				e = responseEvent()
			case k == 10 && s.State() == Responding:
				e.Kind, e.Body, e.End = ResponseBody, []byte(answer), true
			case k == 11 && r.IntN(2) == 0:
				e.Kind = Recovered
			case k == 12 && r.IntN(3) == 0:
				e.Kind = StreamDone
				over = true
			default:
				continue
			}
			apply(s.Step(e))
		}
		apply(s.Step(Event{Kind: StreamDone, Now: now}))
		for _, c := range calls { // what was still on its way
			shards[c.Tag].reserve(can[c.Tag])
		}
		for _, tag := range late {
			shards[tag].reserve(can[tag])
		}
		for _, i := range r.Perm(len(jobs)) {
			shards[shardOf(jobs[i])].settle(jobs[i])
		}
		if answers > 1 || answers == 1 && resumes > 0 && !forwarded {
			t.Fatalf("seed %d: %d answers, %d resumes", seed, answers, resumes)
		}
		for i, m := range shards {
			if m.held {
				t.Fatalf("seed %d: shard %d holds what nobody settles (state %v, %s)", seed, i, s.State(), s.record.decision)
			}
			if !forwarded && m.booked != 0 {
				t.Fatalf("seed %d: shard %d booked %d of a call that didn't pass", seed, i, m.booked)
			}
			if forwarded && (!m.settled || m.booked == 0) {
				t.Fatalf("seed %d: shard %d booked nothing of a call that passed", seed, i)
			}
		}
		if len(w.leases.byID) > 0 {
			t.Fatalf("seed %d: %d leases are kept for ever", seed, len(w.leases.byID))
		}
		switch {
		case forwarded:
			passed++
		case answers > 0:
			refused++
		default:
			cut++
		}
	}
	if passed < 1000 || refused < 1000 || cut < 1000 {
		t.Errorf("%d passed, %d were refused, %d cut off: too few of a kind", passed, refused, cut)
	}
}

func shardOf(j *Job) int {
	if j.layout.Tag == "g" {
		return 0
	}
	return 1
}

// answerOf is what a shard answers.
func answerOf(p *part, o bucket.Outcome) Event {
	switch o {
	case bucket.Settled:
		return storeReply(0, 0, done(p.call.Nonce, int64(o), 5000, 0, 0, 0))
	case bucket.Replayed:
		v := numbers(int64(o), 5000, 65000, 0, 0)
		for range p.At {
			v = append(v, numbers(100)...)
		}
		return storeReply(0, 0, append(v, done(p.call.Nonce)...))
	}
	return says(p, o, 1, 2500, 100)
}
