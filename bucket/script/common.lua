-- Emmer 1. What all scripts share: the clock, the limits' state, how it moves with time.
-- Numbers become text only by int(): Redis' own conversions keep 14 or 17 digits.
-- No table has a large number as a key: gopher-lua (miniredis) would fill an array up to it.
local call,floor,max,min,sub,match,byte=redis.call,math.floor,math.max,math.min,string.sub,string.match,string.byte
local unpack=table.unpack or unpack
local KEYS,ARGV,tonumber,pairs=KEYS,ARGV,tonumber,pairs -- Redis looks a global up some 0.1 us slower
local MOST=9007199254740991
local time=call('TIME')
local raw=time[1]*1000+floor(time[2]/1000) -- for TTLs: it is Redis who lets keys expire
local now=raw                              -- never before what a limit of this call has seen

local format=string.format
-- %d takes half the time of %.0f, but goes through a C long, which has 32 bits on some machines.
local whole=format('%d',MOST)=='9007199254740991' and '%d' or '%.0f'
local function int(n) return format(whole,n) end
local function ceildiv(n,d) local m=n%d if m>0 then return (n-m)/d+1 end return n/d end
local function roundup(n,cell) return ceildiv(n,cell)*cell end

local OWN={t='t',x='x',u='u',f='f',a='ra',s='rs',p='p'}
local RARE -- what only the rarer kinds need, see rare.lua
local rare
-- Reads n limits whose arguments begin at ARGV[p] and whose keys begin at KEYS[k].
-- q.u+q.f/q.rs is what a bucket has used, q.m what a window has, q.r the lease cells, q.e their ends.
-- Text becomes a number by +0, a third of the time of tonumber.
local function load(p,k,n,blind)
  local L={}
  for i=1,n do
    -- What most limits have is named here, so that the table seldom grows.
    local kind,lost=ARGV[p],ARGV[p+2]
    local q={key=KEYS[k+i-1],kind=kind,n=ARGV[p+1]+0,lost=lost,t=0,x=0,u=0,f=0,m={},r={},e={},set={},gone={},
      a=nil,s=nil,max=nil,b=nil,ra=nil,rs=nil,f0=nil,cur=nil,lo=nil,fin=nil,used=nil,dirty=nil}
    if #lost>1 then rare().options(q) end
    if kind=='b' then
      q.a,q.s,q.max=ARGV[p+3]+0,ARGV[p+4]+0,ARGV[p+5]+0 p=p+6
    elseif kind=='w' then
      q.max=ARGV[p+3]+0
      q.b={ARGV[p+4],ARGV[p+5],ARGV[p+6],ARGV[p+7]} p=p+8
    else p=rare().args(q,p) end
    -- A reserve takes nothing from an observer, and doesn't look at it.
    local h=blind and kind=='o' and {} or call('HGETALL',q.key)
    for j=1,#h,2 do
      local f,v=h[j],h[j+1]+0
      if #f==1 then q[OWN[f]]=v
      else
        local c=byte(f)
        if c==119 then q.m[f]=v -- w
        elseif c==114 or c==99 then q.r[f],q.e[f]=v,match(f,'%d+')+0 -- r, c
        else
          q.more=q.more or {}
          q.more[f]=v
        end
      end
    end
    if q.t>now then now=q.t end
    q.f0=#h>0 and q.f
    L[i]=q
  end
  return L
end

local function raise(q,v) if q.u+v>=MOST then q.u,q.f=MOST,0 else q.u=q.u+v end end
local function lower(q,v) if v>q.u then q.u,q.f=0,0 else q.u=q.u-v end end

-- Refills a bucket: u+f/s less dt*a/s, exactly. a*s is below 2^53 (bucket.Limit.Check); where the
-- first product is not, it is far above u.
local function refill(q,dt,a,s)
  local w,x=floor(dt/s)*a,(dt%s)*a
  local g=x%s
  w=w+(x-g)/s
  if g>q.f then w=w+1 q.f=q.f+s-g else q.f=q.f-g end
  lower(q,w)
end

-- Chooses a window's period by Redis' time. strict: the caller has just computed the bounds.
local function period(q,strict)
  local i=0
  while i<4 and q.b[i+1]+0<=now do i=i+1 end
  if i==0 or strict and i==4 then return 'ERR emmer the bounds of a window are not around the time of the store' end
  q.cur,q.lo=q.b[i],q.b[max(1,i-1)]+0
  q.fin=i<4 and q.b[i+1]+0 or 2*q.b[4]-q.b[3]
end

-- Brings a limit to now. Sets q.used, which counts a begun token as a whole one.
local function advance(q,strict)
  local kind=q.kind
  if kind=='b' then
    if q.rs then refill(q,now-q.t,q.ra,q.rs) end
  elseif kind=='w' then
    local bad=period(q,strict)
    if bad then return bad end
  else rare().before(q) end
  for f,v in pairs(q.r) do
    if q.e[f]<=now then
      if byte(f)==114 then -- r
        if kind=='b' then lower(q,v)
        elseif kind=='w' or kind=='r' then
          local w='w'..match(f,':(%d+)')
          if q.m[w] then q.m[w]=max(0,q.m[w]-v) q.set[w]=true end
        elseif kind=='s' then RARE.book(q,-v,match(f,':(.*)')) end
      end
      q.gone[#q.gone+1]=f q.r[f]=nil
    end
  end
  if kind=='b' then
    -- A changed rate holds from the first call that brings it.
    if q.rs and (q.ra~=q.a or q.rs~=q.s) then
      q.f=ceildiv(q.f*q.s,q.rs)
      if q.f>=q.s then q.f=0 raise(q,1) end
      q.dirty=true
    end
    q.used=q.u+(q.f>0 and 1 or 0)
    if q.more then rare().bound(q,q.p,'') end
  else
    for f in pairs(q.m) do
      if sub(f,2)+0<q.lo then q.gone[#q.gone+1]=f q.m[f]=nil q.set[f]=nil end
    end
    if kind=='w' then q.used=q.m['w'..q.cur] or 0
    else RARE.after(q) end
  end
end

-- Adds v, which may be negative, to what is used: of a window, in the period that began at `at`.
local function book(q,v,at)
  if v==0 then return end
  local kind=q.kind
  if kind=='b' then
    if v<0 then lower(q,-v) else raise(q,v) end
    q.used=q.u+(q.f>0 and 1 or 0)
  elseif kind=='s' then RARE.book(q,v,at)
  elseif kind=='c' then return -- its lease cells are all it has
  else
    local w='w'..at
    q.m[w]=min(max(0,(q.m[w] or 0)+v),MOST) q.set[w]=true
    if kind=='w' then q.used=q.m['w'..q.cur] or 0 end
  end
  q.dirty=true
end

-- Adds v, which may be negative, to a lease cell.
local function hold(q,e,lost,at,v)
  local kind=q.kind
  if v==0 or kind=='o' then return end
  q.dirty=true
  local f=lost..int(e)
  if q.cur then f=f..':'..at end
  local s=(q.r[f] or 0)+v
  if s>0 then q.r[f],q.e[f],q.set[f]=min(s,MOST),e,true
  elseif q.r[f] then q.r[f]=nil q.set[f]=nil q.gone[#q.gone+1]=f
  else return end
  if kind=='c' then q.used=q.used+v end
end

-- Writes a limit back, or removes it if nothing is used and nothing held.
local function save(q,keep)
  local a,n={'t',int(now)},2
  local need,empty=now,true
  if q.kind=='b' then
    a[3],a[4]='u',int(q.u) n=4
    if q.f~=q.f0 then a[5],a[6]='f',int(q.f) n=6 end
    if q.ra~=q.a or q.rs~=q.s then a[n+1],a[n+2],a[n+3],a[n+4]='a',int(q.a),'s',int(q.s) n=n+4 end
    empty=q.used==0
    need=now+min(9e12,floor((q.u*q.s+q.f)/q.a)+1)
  elseif q.kind=='s' then n,need,empty=RARE.save(q,a,n)
  else
    for f,v in pairs(q.m) do
      if v>0 then empty=false if q.set[f] then a[n+1],a[n+2]=f,int(v) n=n+2 end
      elseif q.set[f] then q.gone[#q.gone+1]=f end
    end
    need=q.fin+keep -- so long may a settle name this period
  end
  if q.more then need,empty=RARE.parked(q,a,#a,need,empty) n=#a end
  for f,v in pairs(q.r) do
    empty=false
    if q.set[f] then a[n+1],a[n+2]=f,int(v) n=n+2 end
    need=max(need,q.e[f]+keep)
  end
  if empty then
    if q.t>0 then call('DEL',q.key) end
    return
  end
  local longer=need>q.x
  if longer then
    need=need+60000
    if q.kind=='b' then need=need+min(need-now,3600000) end -- a busy bucket is not put off at every call
    a[n+1],a[n+2]='x',int(need)
  end
  -- A field that has gone and come back must stay. t is never among them, so the key keeps its TTL.
  if #q.gone>0 then call('HDEL',q.key,unpack(q.gone)) end
  call('HSET',q.key,unpack(a))
  if longer then call('PEXPIRE',q.key,int(min(9e12,need-raw))) end
end

-- A record is R|deadline|amount:place:lost:remaining|... or S|deadline; Q in place of R where it has
-- more: further parts of an item, a start, the places of a shared bucket. After its deadline and
-- keep it is forgotten, whether or not Redis has removed it.
local function record(keep)
  local rec=call('GET',KEYS[2])
  if not rec then return end
  local state,e=match(rec,'^(%a)|(%d+)')
  e=tonumber(e)
  if now<=e+keep then return state,e,rec end
end

local function parts(rec,n)
  local P={}
  if byte(rec)==81 then rare().parts(rec,P) -- Q
  else
    for a,at,lost,left in string.gmatch(rec,'|(%d+):(%d+):(%a):(%-?%d+)') do
      P[#P+1]={n=tonumber(a),at=at,lost=lost,left=left}
    end
  end
  if #P~=n then return nil,redis.error_reply('ERR emmer the items differ from the reservation') end
  return P
end

local function write(state,e,P,keep,cell)
  local s={state,int(e)}
  if P.long then rare().write(s,P)
  else
    for i=1,#P do s[2+i]=int(P[i].n)..':'..P[i].at..':'..P[i].lost..':'..P[i].left end
  end
  call('SET',KEYS[2],table.concat(s,'|'),'PX',int(max(1,e+keep-raw)+cell))
end
