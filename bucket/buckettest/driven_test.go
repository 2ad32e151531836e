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
		{script.Reserve, "if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then\n      local", "if (q.n>q.max-q.used or q.bound) and not q.shadow then\n      local"},
		{script.Reserve, "local lacks=q.n-(q.max-q.u) -- and", "local lacks=q.u+q.n-q.max -- and"},
		{script.Reserve, "never=never or i", "never=i"},
		{script.Reserve, "if t>at then", "if t>=at then"},
		{script.Reserve, "if till==0 or till>now then return {4", "if till==0 or till>=now then return {4"},
		{script.Reserve, "if state and state~='S' and e>now then", "if state and state~='S' then"},
		{script.Reserve, "if refilled()<=E[i].at then return max(first,E[i].at) end", "if lacks<=0 then return max(first,E[i].at) end"},
		{script.Reserve, "if lost=='r' and (kind", "if (kind"},
		{script.Reserve, "ceildiv(m*q.s+q.f,q.a))-queue", "ceildiv(m*q.s,q.a))-queue"},
		{script.Reserve, "if q.dirty then save(q,keep) end\n  end\n  if odd", "end\n  if odd"},
		{script.Reserve, "e=roundup(start+lease,cell)", "e=start+lease"},
		{script.Reserve, "if q.e[f]<=now then", "if q.e[f]<now then"},
		{script.Reserve, "if g>q.f then w=w+1 q.f=q.f+s-g else", "if g>q.f then w=w+1 q.f=0 else"},
		{script.Reserve, "q.f=ceildiv(q.f*q.s,q.rs)", "q.f=floor(q.f*q.s/q.rs)"},
		{script.Settle, "if q.u+v>=MOST then q.u,q.f=MOST,0 else", "if false then else"},
		{script.Settle, "if live or p.lost=='c' then", "if live then"},
		{script.Settle, "if live then hold(q,e,p.lost,at,-p.n) end", ""},
		{script.Settle, "if not state and D>0 and now>D+keep then return {5,now} end", ""},
		{script.Settle, "local dead=max(e or 0,D)", "local dead=D"},
		{script.Renew, "elseif p.lost=='r' then", "else"},
		{script.Renew, "else hold(q,e0,p.lost,p.at,-p.n) end", "end"},
		{script.Renew, "if live and e<=e0 then", "if false then"},
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
