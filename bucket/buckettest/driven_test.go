package buckettest

import (
	"fmt"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// driven is a real Redis whose scripts take the time from a key. Its TTLs run by the real clock, so
// nothing expires within a test: what a script makes of old state is seen, not what Redis removes.
type driven struct {
	*Redis
	now bucket.Millis
}

func newDriven(t *testing.T, r *Redis) *driven {
	for _, s := range script.All() {
		r.Edit(s, "local time=call('TIME')", "local time={0,call('GET','clock')*1000}")
	}
	d := &driven{Redis: r}
	d.SetTime(Epoch)
	return d
}

func (d *driven) Now() bucket.Millis { return d.now }

func (d *driven) Pass(by bucket.Millis) { d.SetTime(d.now + by) }

func (d *driven) SetTime(at bucket.Millis) {
	d.now = at
	if err := d.Client.Set(background(), "clock", int64(at), 0).Err(); err != nil {
		d.t.Fatal(err)
	}
}

// Redis' own Lua makes short work of numbers that gopher-lua keeps: the same walks must agree there.
func TestRealLuaAgreesWithModel(t *testing.T) {
	client := StartServer(t).Client()
	for seed := int64(101); seed <= 112; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			d := newDriven(t, NewRedis(t, client))
			if diff := differ(seed, 1500, NewModel(), d); diff != "" {
				t.Error(diff)
			}
			checkKeys(t, d.Redis, d.now)
		})
	}
}

func TestDrivenRedis(t *testing.T) {
	client := StartServer(t).Client()
	Run(t, func(t *testing.T) Store { return newDriven(t, NewRedis(t, client)) })
}

// The walks are worth something only if they see a script that is wrong.
func TestWalksSeeBrokenScripts(t *testing.T) {
	client := StartServer(t).Client()
	for _, tt := range []struct {
		s        *script.Script
		from, to string
	}{
		{script.Reserve, "if q.n>0 and q.n>q.max-q.used then", "if q.n>q.max-q.used then"},
		{script.Reserve, "local lacks=q.n-(q.max-q.u)", "local lacks=q.u+q.n-q.max"},
		{script.Reserve, "never=never or i", "never=i"},
		{script.Reserve, "if t>at then", "if t>=at then"},
		{script.Reserve, "if till==0 or till>now then", "if till==0 or till>=now then"},
		{script.Reserve, "if state=='R' and e>now then", "if state=='R' then"},
		{script.Reserve, "if refilled()<=E[i].at then return E[i].at end", "if lacks<=0 then return E[i].at end"},
		{script.Reserve, "if lost=='r' and (", "if ("},
		{script.Reserve, "ceildiv(m*q.s+q.f,q.a)", "ceildiv(m*q.s,q.a)"},
		{script.Reserve, "if q.dirty then save(q,keep) end\n  end\n  return out", "end\n  return out"},
		{script.Reserve, "e=roundup(now+lease,cell)", "e=now+lease"},
		{script.Reserve, "if q.e[f]<=now then", "if q.e[f]<now then"},
		{script.Reserve, "if g>q.f then w=w+1 q.f=q.f+s-g else", "if g>q.f then w=w+1 q.f=0 else"},
		{script.Reserve, "q.f=ceildiv(q.f*q.s,q.rs)", "q.f=floor(q.f*q.s/q.rs)"},
		{script.Settle, "if q.u+v>=MOST then q.u,q.f=MOST,0 else", "if false then else"},
		{script.Settle, "if live or p.lost=='c' then", "if live then"},
		{script.Settle, "if live then hold(q,e,p.lost,at,-p.n) end", ""},
		{script.Settle, "if not state and D>0 and now>D+keep then return {5,now} end", ""},
		{script.Settle, "local dead=max(e or 0,D)", "local dead=D"},
		{script.Renew, "elseif p.lost=='r' then book", "else book"},
		{script.Renew, "if live then hold(q,e0,p.lost,p.at,-p.n)", "if live then"},
		{script.Renew, "if live and e<=e0 then", "if live and e<e0 then"},
	} {
		seen := false
		for seed := int64(1); seed <= 30 && !seen; seed++ {
			r := NewRedis(t, client)
			d := newDriven(t, r)
			r.Edit(tt.s, tt.from, tt.to)
			seen = differ(seed, 1500, NewModel(), d) != ""
		}
		if !seen {
			t.Errorf("%s: nothing sees %q in place of %q", tt.s.Name, tt.to, tt.from)
		}
	}
}
