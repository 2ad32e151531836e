  -- A shared bucket: q.u+q.f/s is what the whole has used, and each share x of q.sh what it has. Spare
  -- is what the whole has left beyond what its shares have left. A place is ~<share>, or * for the spare.
  local LOT=562949953421311 -- 2^49-1: sums over the shares stay exact

  -- cur borrow rate per burst most, number of shares, then place rate burst 1|0 (reserved) of each
  function R.shares(q,p)
    q.cur,q.borrow,q.a,q.s,q.whole,q.max=ARGV[p+3],ARGV[p+4]=='1',ARGV[p+5]+0,ARGV[p+6]+0,ARGV[p+7]+0,ARGV[p+8]+0
    local n=ARGV[p+9]+0
    q.sh,q.by={},{}
    p=p+10
    for i=1,n do
      local x={at=ARGV[p],a=ARGV[p+1]+0,b=ARGV[p+2]+0,res=ARGV[p+3]=='1',u=0,f=0}
      q.sh[i],q.by[x.at]=x,x
      p=p+4
    end
    return p
  end

  function R.refill(q)
    local m=q.more or {}
    for i=1,#q.sh do
      local x=q.sh[i]
      x.u,x.f,x.ra=m['U'..x.at] or 0,m['F'..x.at] or 0,m['A'..x.at] or x.a
      x.u0,x.f0,x.a0=x.u,x.f,m['A'..x.at]
      if q.rs then refill(x,now-q.t,x.ra,q.rs) end
    end
    if q.rs then refill(q,now-q.t,q.ra,q.rs) end
  end

  local function change(x,v)
    if v<0 then lower(x,-v) else
      raise(x,v)
      if x.u>=LOT then x.u,x.f=LOT,0 end
    end
  end

  function R.book(q,v,at)
    local x=q.by[at]
    if x then change(x,v) end
    if not x or not x.res then change(q,v) end
    q.used=q.max-R.available(q,q)
  end

  -- What the whole has beyond its shares is w-g/s.
  local function spare(c,q)
    local s=q.s
    local w,g=q.whole-c.u,c.f
    for i=1,#c.sh do
      local x=c.sh[i]
      if not x.res then w,g=w-(x.b-x.u),g-x.f end
    end
    local k=floor(g/s)
    return w-k,g-k*s
  end

  -- What the class of q can have in the state c, which is q or a copy.
  function R.available(c,q)
    local x=c.by[q.cur]
    local w,g=0,0
    if x then w,g=x.b-x.u,x.f end
    if q.borrow then
      local v,h=spare(c,q)
      if v>=1 then w,g=w+v,g+h end
      if g>=q.s then w,g=w-1,g-q.s end
    end
    return w-(g>0 and 1 or 0)
  end

  local function borrows(c,q,n)
    local x=c.by[q.cur]
    if not x or not q.borrow then return 0 end
    local lacks=n-min(n,max(0,x.b-x.u-(x.f>0 and 1 or 0)))
    if n<=R.available(c,q) then return lacks end
    local w,g=spare(c,q)
    return min(lacks,max(0,w-(g>0 and 1 or 0)))
  end

  -- Takes n: what the class owns, then the spare, then again its own, into debt.
  function R.take(P,q,n,lost,left)
    local b=borrows(q,q,n)
    local p={n=n-b,at=q.cur,lost=lost,left=left}
    book(q,n-b,q.cur)
    if b>0 then
      book(q,b,'*')
      p.more={{n=b,at='*'}}
    end
    P.long=true
    return p
  end

  function R.scale(q)
    q.lo=0
    local from=q.rs
    local function scale(x)
      if from and from~=q.s then
        x.f=ceildiv(x.f*q.s,from)
        if x.f>=q.s then x.f=0 raise(x,1) end
      end
    end
    if from and (from~=q.s or q.ra~=q.a) then q.dirty=true end
    scale(q)
    for i=1,#q.sh do
      local x=q.sh[i]
      scale(x)
      if from and x.ra~=x.a then q.dirty=true end
    end
    if q.more then R.bound(q,q.more['p'..q.cur],':'..q.cur) end
    q.used=q.max-R.available(q,q)
  end

  function R.save(q,a,n)
    a[3],a[4],n='u',int(q.u),4
    local function put(f,v) a[n+1],a[n+2]=f,int(v) n=n+2 end
    if q.f~=q.f0 then put('f',q.f) end
    if q.ra~=q.a or q.rs~=q.s then put('a',q.a) put('s',q.s) end
    local need,empty=(q.u*q.s+q.f)/q.a,q.u==0 and q.f==0
    for i=1,#q.sh do
      local x=q.sh[i]
      if x.u~=x.u0 then put('U'..x.at,x.u) end
      if x.f~=x.f0 then put('F'..x.at,x.f) end
      if x.a0~=x.a then put('A'..x.at,x.a) end
      if x.u>0 or x.f>0 then
        empty=false
        need=max(need,x.a>0 and (x.u*q.s+x.f)/x.a or 9e12)
      end
    end
    for f in pairs(q.more or {}) do -- of a class that has no share any more
      local c,at=match(f,'^([UFA])(.*)$')
      if c and not q.by[at] then q.gone[#q.gone+1]=f end
    end
    return n,now+min(9e12,floor(need)+1),empty
  end

  local function copy(c)
    local d={u=c.u,f=c.f,sh={},by={}}
    for i=1,#c.sh do
      local x=c.sh[i]
      local y={at=x.at,a=x.a,b=x.b,res=x.res,u=x.u,f=x.f}
      d.sh[i],d.by[y.at]=y,y
    end
    return d
  end

  local function after(c,q,dt)
    local d=copy(c)
    refill(d,dt,q.a,q.s)
    for i=1,#d.sh do refill(d.sh[i],dt,d.sh[i].a,q.s) end
    return d
  end

  -- How long until the class owns what it doesn't find in the spare now, or nil. A later spare is
  -- promised to nobody, as its owners may want it back by then.
  function R.delay(c,q)
    if q.n<=R.available(c,q) then return 0 end
    local x=q.queue and c.by[q.cur]
    local need=q.n-borrows(c,q,q.n)
    if not x or x.a==0 or need>x.b then return end
    local lacks=need-(x.b-x.u)
    if lacks<0 or lacks==0 and x.f==0 then return 0 end
    local m=lacks%x.a
    return (lacks-m)/x.a*q.s+ceildiv(m*q.s+x.f,x.a)
  end

  -- When the class could have q.n, or a start that is soon enough: by refill and by what leases
  -- give back (E, in order). What is true once stays true, so halving finds it.
  function R.when(q,E)
    local function ok(c,t)
      local d=R.delay(c,q)
      return d and min(d,MOST-t)<=(q.queue or 0)
    end
    local function seek(c,t,no,yes)
      while yes-no>1 do
        local d=no+floor((yes-no)/2)
        if ok(after(c,q,d),t+d) then yes=d else no=d end
      end
      return t+yes
    end
    local c,t=copy(q),now
    if ok(c,t) then return now end
    for i=1,#E do
      local d=E[i].at-t
      local later=after(c,q,d)
      if d>0 and ok(later,t+d) then return seek(c,t,0,d) end
      c,t=later,E[i].at
      local x=c.by[E[i].place]
      if x then lower(x,E[i].v) end
      if not x or not x.res then lower(c,E[i].v) end
      if ok(c,t) then return t end
    end
    local no,yes=0,1000
    while t+yes<MOST and not ok(after(c,q,yes),t+yes) do
      no,yes=yes,min(yes*16,MOST-t)
    end
    return seek(c,t,no,yes)
  end
  return R
end
