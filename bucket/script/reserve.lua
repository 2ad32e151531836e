-- KEYS: ctl, record, limit... ARGV: lease, keep, cell, number of kill flags, kill flag...,
-- then of each limit: b amount lost rate per burst | w amount lost max start start start start; nonce
local lease,keep,cell,kills=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3]),tonumber(ARGV[4])
local L=load(5+kills,3)
local state,e,rec=record(keep)
if state=='R' and e>now then
  local P,bad=parts(rec,#L)
  if bad then return bad end
  local out={2,now,e,0,0}
  for i=1,#P do out[5+i]=tonumber(P[i].left) end
  return out
end
-- Settled, cancelled, or the lease has ended: this id is used up.
if state then return {5,now,0,0,0} end

if kills>0 then
  local flags=call('HMGET',KEYS[1],unpack(ARGV,5,4+kills))
  for i=1,kills do
    local flag=flags[i]
    if flag then
      local till=tonumber(match(flag,'^(%d+)|') or '0')
      if till==0 or till>now then return {4,now,0,i,0,(string.gsub(sub(flag,1,512),'[^ -~]','?'))} end
    end
  end
end

-- When a limit that denies would have room for q.n, if nobody else acts: by refill, by lease cells
-- that give back, or by the next period.
local function when(q)
  local E={}
  for f,v in pairs(q.r) do
    local lost,at,start=match(f,'^(%a)(%d+):?(%d*)$')
    if lost=='r' and (q.kind=='b' or start==q.cur) then E[#E+1]={at=tonumber(at),v=v} end
  end
  table.sort(E,function(x,y) return x.at<y.at end)
  if q.kind=='w' then
    local used=q.used
    for i=1,#E do
      used=used-E[i].v
      if q.n<=q.max-used then return min(E[i].at,q.fin) end
    end
    return q.fin
  end
  local lacks=q.n-(q.max-q.u) -- and q.f/q.s more
  local function refilled()
    local m=lacks%q.a
    return min(MOST,now+(lacks-m)/q.a*q.s+ceildiv(m*q.s+q.f,q.a))
  end
  for i=1,#E do
    local at=refilled()
    if at<=E[i].at then return at end
    lacks=lacks-E[i].v
    if refilled()<=E[i].at then return E[i].at end
  end
  return refilled()
end

local never,by,at=nil,nil,0
for i=1,#L do
  local q=L[i]
  local bad=advance(q,true)
  if bad then return redis.error_reply(bad) end
end
for i=1,#L do
  local q=L[i]
  if q.n>0 and q.n>q.max-q.used then -- never a sum above 2^53
    if q.n>q.max then never=never or i
    else
      local t=when(q)
      if t>at then by,at=i,t end
    end
  end
end
if never or by then
  local out={3,now,0,by,at-now}
  if never then out={6,now,0,never,0} end
  for i=1,#L do
    local q=L[i]
    out[5+i]=q.max-q.used
    if q.dirty then save(q,keep) end
  end
  return out
end

-- The record is the first write: where Redis may not write (OOM, READONLY), nothing has been taken.
e=roundup(now+lease,cell)
local out,P={1,now,e,0,0},{}
for i=1,#L do
  local q=L[i]
  out[5+i]=q.max-q.used-q.n
  P[i]={n=q.n,at=q.cur or '0',lost=q.lost,left=int(out[5+i])}
end
write('R',e,P,keep,cell)
for i=1,#L do
  local q=L[i]
  book(q,q.n,q.cur)
  hold(q,e,q.lost,q.cur,q.n)
  if q.dirty then save(q,keep) end
end
return out
