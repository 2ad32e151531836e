-- What only the rarer kinds, queued calls, extended ones and overrides need: made when first asked for.
-- It finds for itself what is a global: each local of the common part that a function uses costs
-- every call some 30 ns, whether or not the function is made use of.
local function kinds()
  local R,MOST={},9007199254740991
  local call,floor,max,min,sub,match,byte,tonumber,pairs=redis.call,math.floor,math.max,math.min,string.sub,string.match,string.byte,tonumber,pairs
  local KEYS,ARGV=KEYS,ARGV
  local MINUTE,TICK=60000,10000 -- of a burn observer

  -- An option is r or c, with ! where the item only shadows, and how long it may queue.
  function R.options(q)
    local lost,shadow,queue=match(q.lost,'^(%a)(!?)(%d*)$')
    q.lost,q.shadow=lost,shadow=='!'
    if queue~='' and queue+0>0 then q.queue=queue+0 end
  end

  function R.args(q,p)
    if q.kind=='r' then
      q.max,q.cell,q.window=ARGV[p+3]+0,ARGV[p+4]+0,ARGV[p+5]+0
      return p+6
    elseif q.kind=='c' then
      q.max=ARGV[p+3]+0
      return p+4
    elseif q.kind=='o' then
      q.max,q.minutes,q.stands,q.flag,q.reason=ARGV[p+3]+0,ARGV[p+4]+0,ARGV[p+5]+0,ARGV[p+6],ARGV[p+7]
      q.cell=TICK q.window=MINUTE*q.minutes-TICK
      return p+8
    end
    return R.shares(q,p)
  end

  -- Of a limit in cells: sets q.cur, the running cell, and q.lo: cells that begin before no longer count.
  function R.before(q)
    q.lo,q.fin=0,now
    if q.kind=='s' then return R.refill(q) end
    if q.kind=='c' then return end
    q.cur,q.lo=int(now-now%q.cell),now-q.cell-q.window+1
    if q.kind=='o' then q.lo=now-now%TICK-MINUTE*q.minutes+1 end
    q.fin=now+q.cell+q.window
  end

  function R.total(q)
    local s,from=0,q.kind=='o' and q.cur-MINUTE or 0
    for f,v in pairs(q.m) do
      if sub(f,2)+0>from then s=min(MOST,s+v) end
    end
    q.used=s
  end

  function R.after(q)
    if q.kind=='s' then return R.scale(q) end
    if q.kind~='c' then return R.total(q) end
    local s=0
    for _,v in pairs(q.r) do s=min(MOST,s+v) end
    q.used=s
  end

  -- Raises an observer's flag if each of its minutes is above its limit, and says whether it did.
  function R.burns(q)
    local S={}
    for k=1,q.minutes do S[k]=0 end
    for f,v in pairs(q.m) do
      local k=floor((q.cur-sub(f,2))/MINUTE)+1
      S[k]=min(MOST,S[k]+v)
    end
    for k=1,q.minutes do
      if S[k]<=q.max then return false end
    end
    local flag=call('HMGET',KEYS[1],q.flag)[1]
    if flag then
      local till=tonumber(match(flag,'^(%d+)|') or '0')
      if till==0 or till>now then return false end
    end
    call('HSET',KEYS[1],q.flag,int(q.stands>0 and now+q.stands or 0)..'|burn|'..q.reason)
    return true
  end

  -- The start before which nobody may start: the last one promised, or less far where the calls that
  -- wait are known to start earlier. They are counted in cells p<last ms of the cell><tail>.
  function R.bound(q,promised,tail)
    local last=0
    for f,v in pairs(q.more) do
      local at,of=match(f,'^p(%d+)(.*)$')
      if at then
        if at+0<now then q.gone[#q.gone+1]=f q.more[f]=nil
        elseif v>0 and of==tail then last=max(last,at+0) end
      end
    end
    last=min(last,promised or 0)
    q.bound=last>now and last or nil
  end

  local function tail(q) return q.kind=='s' and ':'..q.cur or '' end

  function R.park(q,start,cell)
    q.more=q.more or {}
    local f='p'..int(roundup(start+1,cell)-1)..tail(q)
    q.more[f]=(q.more[f] or 0)+1 q.set[f]=true
    f=q.kind=='s' and 'p'..q.cur or 'p'
    q.more[f]=start q.set[f]=true
    q.dirty=true
  end

  function R.unpark(q,start,cell)
    local f='p'..int(roundup(start+1,cell)-1)..tail(q)
    local v=q.more and q.more[f]
    if not v then return end
    q.dirty=true
    if v>1 then q.more[f]=v-1 q.set[f]=true
    else q.more[f]=nil q.set[f]=nil q.gone[#q.gone+1]=f end
  end

  function R.parked(q,a,n,need,empty)
    for f,v in pairs(q.more) do
      if byte(f)==112 then -- p
        if q.set[f] then a[n+1],a[n+2]=f,int(v) n=n+2 end
        local at=match(f,'^p(%d+)')
        if at then need,empty=max(need,at+0),false end
      end
    end
    return need,empty
  end

  -- A longer record: amount:place:lost:remaining, then +amount:place for each further part; lost is a
  -- capital where this limit made the call wait; last of all @start.
  function R.parts(rec,P)
    P.long=true
    for a,at,lost,left,rest in string.gmatch(rec,'|(%d+):([^:|]*):(%a):(%-?%d+)([^|]*)') do
      local p={n=tonumber(a),at=at,lost=string.lower(lost),left=left,parked=byte(lost)<97}
      for n,place in string.gmatch(rest,'%+(%d+):([^+]*)') do
        p.more=p.more or {}
        p.more[#p.more+1]={n=tonumber(n),at=place}
      end
      P[#P+1]=p
    end
    local start=match(rec,'|@(%d+)$')
    P.start=start and start+0
  end

  function R.write(s,P)
    s[1]='Q'
    for i=1,#P do
      local p=P[i]
      local t=int(p.n)..':'..p.at..':'..(p.parked and string.upper(p.lost) or p.lost)..':'..p.left
      for k=1,p.more and #p.more or 0 do t=t..'+'..int(p.more[k].n)..':'..p.more[k].at end
      s[2+i]=t
    end
    if P.start then s[#s+1]='@'..int(P.start) end
  end

  function R.sum(p)
    local s=p.n
    for k=1,p.more and #p.more or 0 do s=s+p.more[k].n end
    return s
  end

  -- Adds v to what a reservation has at a place: to its last part, or as a further one.
  function R.add(P,p,v,at)
    local last=p.more and p.more[#p.more] or p
    if last.at==at then last.n=last.n+v
    elseif v>0 then
      p.more=p.more or {}
      p.more[#p.more+1]={n=v,at=at}
      P.long=true
    end
  end

  -- Moves all parts of a reservation into the lease cell e, or out of it.
  function R.hold(q,e,p,sign)
    hold(q,e,p.lost,p.at,sign*p.n)
    for k=1,p.more and #p.more or 0 do hold(q,e,p.lost,p.more[k].at,sign*p.more[k].n) end
  end

  -- Books what a call has used where it was reserved, the last given back first. An overrun belongs to
  -- the period that was reserved in last, or to the class itself; what an observer sees, to now.
  -- Returns what was booked beyond before.
  function R.settle(q,p,live,e)
    if q.kind=='s' and not (p and (live or p.lost=='c')) then -- others may have what it had borrowed
      R.take({},q,q.n)
      return 0
    end
    local rest,more,last=q.n,0,p and p.more and #p.more or 0
    if p then
      local kept=live or p.lost=='c'
      if live then R.hold(q,e,p,-1) end
      for k=0,last do
        local part=k==0 and p or p.more[k]
        local a=min(rest,part.n)
        if k==last and q.kind~='o' and q.kind~='s' then a=rest end
        rest=rest-a
        local d,at=a-(kept and part.n or 0),part.at
        if q.kind~='s' and q.kind~='b' and at+0<q.lo then d,at=max(0,d),q.cur end
        book(q,d,at)
        more=max(more,d)
      end
    end
    if rest>0 then book(q,rest,q.cur) end
    return max(more,rest)
  end

  local function whole(s) return match(s,'^%d+$') and #s<=16 and s+0<=MOST and s+0 end

  -- Puts an override's value in place: max|until, or rate/per/burst|until for a bucket. Says whether
  -- it is one; one that is over is, and changes nothing.
  function R.override(q,text)
    local value,till=match(text,'^([^|]*)|(%d+)$')
    till=till and whole(till)
    if not till then return false end
    local holds=till==0 or till>now
    if q.kind=='b' then
      local a,s,b=match(value,'^(%d+)/(%d+)/(%d+)$')
      if not a then return false end
      a,s,b=whole(a),whole(s),whole(b)
      if not (a and s and b) or a<1 or s<1 or s>86400000 or a*s>MOST then return false end
      if holds then q.a,q.s,q.max=a,s,b end
      return true
    end
    local m=whole(value)
    if not m or q.kind=='s' or q.kind=='c' and m>2147483647 then return false end
    if holds then q.max=m end
    return true
  end

