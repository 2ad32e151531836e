package buckettest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

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

// Copy keeps what Redis has of this store, and lets Redis go on from it.
func (d *driven) Copy() (goOn func()) {
	ctx := background()
	must := func(err error) {
		if err != nil && !errors.Is(err, redis.Nil) {
			d.t.Fatal(err)
		}
	}
	keys := func() []string {
		found, err := d.Client.Keys(ctx, d.Layout.Namespace+":*").Result()
		must(err)
		return found
	}
	names := keys()
	dumps, ttls := make([]*redis.StringCmd, len(names)), make([]*redis.DurationCmd, len(names))
	_, err := d.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range names {
			dumps[i], ttls[i] = p.Dump(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	})
	must(err)
	return func() {
		gone := keys()
		_, err := d.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			if len(gone) > 0 {
				p.Del(ctx, gone...)
			}
			for i, key := range names {
				ttl := max(1, ttls[i].Val().Milliseconds())
				switch ttls[i].Val() {
				case -2: // it had just expired
					continue
				case -1: // for ever, which RESTORE writes as 0
					ttl = 0
				}
				if dumps[i].Err() == nil {
					p.Do(ctx, "RESTORE", key, ttl, dumps[i].Val())
				}
			}
			return nil
		})
		must(err)
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
		// The rarer kinds, extensions, overrides and queues.
		{script.Reserve, "q.cur,q.lo=int(now-now%q.cell),now-q.cell-q.window+1", "q.cur,q.lo=int(now-now%q.cell),now-q.window+1"},
		{script.Reserve, "for _,v in pairs(q.r) do s=min(MOST,s+v) end", "for _,v in pairs(q.r) do s=max(s,v) end"},
		{script.Reserve, "if x.at>=over then x.v=0 elseif", "if"},
		{script.Reserve, "if q.n>q.max-used then return at end", "if q.n>=q.max-used then return at end"},
		{script.Reserve, "last=min(last,promised or 0)", "last=promised or 0"},
		{script.Reserve, "return d and max(min(MOST,now+d),q.bound or 0)", "return d and min(MOST,now+d)"},
		{script.Reserve, "e=roundup(start+lease,cell)", "e=roundup(now+lease,cell)"},
		{script.Reserve, "if not x.res then w,g=w-(x.b-x.u),g-x.f end", "w,g=w-(x.b-x.u),g-x.f"},
		{script.Reserve, "if g>=q.s then w,g=w-1,g-q.s end", ""},
		{script.Reserve, "if not x or not x.res then change(q,v) end", "change(q,v)"},
		{script.Reserve, "min(lacks,max(0,w-(g>0 and 1 or 0)))", "min(lacks,max(0,w))"},
		{script.Reserve, "local holds=till==0 or till>now", "local holds=till==0 or till>=now"},
		{script.Reserve, "if O[i] and not rare().override(L[i],O[i]) and odd==0 then odd=i end", "if O[i] and not rare().override(L[i],O[i]) then odd=i end"},
		{script.Settle, "if S[k]<=q.max then return false end", "if S[k]<q.max then return false end"},
		{script.Settle, "local k=floor((q.cur-sub(f,2))/MINUTE)+1", "local k=1"},
		{script.Settle, "if till==0 or till>now then return false end", ""},
		{script.Settle, "if k==last and q.kind~='o' and q.kind~='s' then a=rest end", "if k==last then a=rest end"},
		{script.Settle, "local a=min(rest,part.n)", "local a=rest"},
		{script.Settle, "if p and p.parked and P.start>now then RARE.unpark", "if p and p.parked and P.start<now then RARE.unpark"},
		{script.Settle, "if q.kind=='s' and not (p and (live or p.lost=='c')) then", "if false then"},
		{script.Extend, "if p.gone then more=more+has end", ""},
		{script.Extend, "if live then R.hold(q,e0,p,-1) end", ""},
		{script.Extend, "local more=max(0,q.n-has)", "local more=q.n-has"},
		{script.Extend, "q.n,q.queue,q.bound=more,nil,nil", "q.n,q.queue=more,nil"},
		{script.Extend, "if last.at==at then last.n=last.n+v", "if true then last.n=last.n+v"},
		{script.Renew, "p.n,p.at,p.more=t.n,t.at,t.more", "p.n,p.at=t.n,t.at"},
		{script.Renew, "if more then sum=RARE.sum(p) end", ""},
	} {
		seen := false
		for seed := int64(1); seed <= 60 && !seen; seed++ {
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

// Nor is the checker worth anything that finds no fault.
func TestCheckerSeesBrokenScripts(t *testing.T) {
	client := StartServer(t).Client()
	for _, tt := range []struct {
		s        *script.Script
		from, to string
	}{
		{script.Reserve, "if state and state~='S' and e>now then", "if state and state~='S' then"},
		{script.Reserve, "if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then short=true end", "if q.n>1 and (q.n>q.max-q.used+1 or q.bound) and not q.shadow then short=true end"},
		{script.Reserve, "  hold(q,e,q.lost,q.cur,q.n)", "  if kind~='c' then hold(q,e,q.lost,q.cur,q.n) end"},
		{script.Reserve, "book(q,b,'*')", ""},
		{script.Reserve, "last=min(last,promised or 0)", "last=0"},
		{script.Reserve, "for _,v in pairs(q.r) do s=min(MOST,s+v) end", ""},
		{script.Settle, "if state=='S' then return {4,now} end", ""},
		{script.Settle, "if live or p.lost=='c' then d=d-p.n end", "if live then d=d-p.n end"},
		{script.Settle, "if live then R.hold(q,e,p,-1) end", ""},
		{script.Settle, "if p and p.parked and P.start>now then RARE.unpark", "if p and p.parked then book(q,0,q.cur) end if false then RARE.unpark"},
		{script.Extend, "local more=max(0,q.n-has)", "local more=max(0,q.n)"},
		{script.Extend, "if p.gone then more=more+has end", ""},
		{script.Renew, "elseif p.lost=='r' then", "elseif false then"},
		{script.Renew, "if more then sum=RARE.sum(p) end", ""},
		// Of these only a failover tells.
		{script.Settle, "if not state and D>0 and now>D+keep then return {5,now} end", ""},
		{script.Settle, "local dead=max(e or 0,D)", "local dead=e or 0"},
	} {
		seen := false
		for seed := int64(1); seed <= 60 && !seen; seed++ {
			r := NewRedis(t, client)
			d := newDriven(t, r)
			r.Edit(tt.s, tt.from, tt.to)
			seen = Check(d, seed, 2000) != ""
		}
		if !seen {
			t.Errorf("%s: the checker doesn't see %q in place of %q", tt.s.Name, tt.to, tt.from)
		}
	}
}
