package buckettest

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// answersDiffer lets answers of all lengths come, on days that pass, and says where a and b tell
// different figures, or "". Every fourth seed fills one step of one day.
func answersDiffer(seed int64, answers int, a, b Store) string {
	r := rand.New(rand.NewSource(seed))
	for i := range answers {
		q := bucket.SettleRequest{ID: fmt.Sprint(i), Lease: 1, Keep: 1, Cell: 1, Answer: bucket.Answer{Of: "a", Tokens: 1 + bucket.Tokens(r.Int63n(1<<r.Intn(22)))}}
		d := bucket.Millis(r.Intn(int(hour) / 4))
		if r.Intn(200) == 0 {
			d = bucket.Millis(r.Intn(4)) * day
		}
		if seed%4 == 0 {
			d = second
			if r.Intn(20) > 0 {
				q.Answer.Tokens = 700
			}
		}
		var told [2]bucket.Tokens
		for k, s := range []Store{a, b} {
			s.Pass(d)
			got, err := s.Settle(q)
			if err != nil {
				return err.Error()
			}
			told[k] = got.Learned
		}
		if told[0] != told[1] {
			return fmt.Sprintf("seed %d, answer %d: %d is told, the model says %d", seed, i, told[1], told[0])
		}
	}
	return ""
}

// TestAnswersAgreeWithModel also looks at what is kept: it is bounded, whatever comes.
func TestAnswersAgreeWithModel(t *testing.T) {
	for seed := int64(1); seed <= 4; seed++ {
		m := NewMini(t)
		if d := answersDiffer(seed, 1200, NewModel(), m); d != "" {
			t.Error(d)
		}
		checkKeys(t, m.Redis, m.Now())
		key := m.Layout.Answers("a")
		fields, err := m.Client.HGetAll(background(), key).Result()
		if err != nil || len(fields) > bucket.AnswerDays+3 {
			t.Errorf("%d fields, %v", len(fields), err)
		}
		for f, v := range fields {
			if len(v) > 3*144 {
				t.Errorf("%s is of %d bytes", f, len(v))
			}
		}
		if ttl := m.Client.PTTL(background(), key).Val().Milliseconds(); ttl < int64(bucket.AnswerDays*day) || ttl > int64((bucket.AnswerDays+1)*day) {
			t.Errorf("a TTL of %d ms", ttl)
		}
	}
}

func TestAnswersSeeBrokenScripts(t *testing.T) {
	client := StartServer(t).Client()
	for _, tt := range []struct{ from, to string }{
		{"if c<1000 then s=", "if c<999 then s="},
		{"odd=x%2", "odd=0"},
		{"'d'..int(today-6),", "'none',"},
		{"left=max(1,floor(total/16))", "left=max(1,floor(total/15))"},
		{"ceildiv(total*95,100)", "floor(total*95/100)"},
		{"ceildiv((to-from)*rank,x)", "floor((to-from)*rank/x)"},
		{"if total>=20 then", "if total>20 then"},
		{"min(tokens,1048576)-1", "min(tokens,1048576)"},
		{"left,a[3],a[4],n=0,", "a[3],a[4],n="},
	} {
		seen := false
		for seed := int64(1); seed <= 12 && !seen; seed++ {
			r := NewRedis(t, client)
			d := newDriven(t, r)
			r.Edit(script.Settle, tt.from, tt.to)
			seen = answersDiffer(seed, 1200, NewModel(), d) != ""
		}
		if !seen {
			t.Errorf("nothing sees %q in place of %q", tt.to, tt.from)
		}
	}
}
