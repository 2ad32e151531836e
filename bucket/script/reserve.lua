-- KEYS: ctl, record, limit..., overrides where fields are given.
-- ARGV: lease, keep, cell, number of kill flags, kill flag..., number of override fields, field...,
-- then of each limit (amount lost: with options, see R.options)
--   b amount lost rate per burst | w amount lost max start start start start | r amount lost max cell window
--   c amount lost max | o amount lost max minutes for flag reason | s amount lost (see R.shares); nonce
local lease,keep,cell,kills=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3]),tonumber(ARGV[4])
local over=5+kills
local n=ARGV[over]+0
local L=load(over+1+n,3,n>0 and #KEYS-3 or #KEYS-2,true)
local state,e,rec=record(keep)
if state and state~='S' and e>now then
  local P,bad=parts(rec,#L)
  if bad then return bad end
  local out={2,now,e,0,P.start or 0}
  for i=1,#P do out[5+i]=tonumber(P[i].left) end
  return out
end
-- Settled, cancelled, or the lease has ended: this id is used up.
if state then return {5,now,0,0,0} end

--@kills
--@override
local never,by,at,start,short=nil,nil,0,now,false
for i=1,#L do
  local q=L[i]
  local bad=advance(q,true)
  if bad then return redis.error_reply(bad) end
  if q.kind=='o' then q.n=0 end
  if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then short=true end -- never a sum above 2^53
end
if short then
--@when
  for i=1,#L do
    local q=L[i]
    if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then
      local s=starts(q)
      if s and s-now<=(q.queue or 0) then
        q.start=s
        if s>start then start=s end
      elseif q.n>q.max then never=never or i
      else
        local t=when(q)
        if t>at then by,at=i,t end
      end
    end
  end
end
if never or by then
  local out={3,now,0,by,at-now}
  if never then out={6,now,0,never,0} end
  for i=1,#L do
    local q=L[i]
    out[5+i]=q.kind=='o' and 0 or q.max-q.used
    if q.dirty then save(q,keep) end
  end
  if odd then
    for i=1,#L do out[#out+1]=L[i].max end
    out[#out+1]=odd
  end
  return out
end

-- The record is the first write: where Redis may not write (OOM, READONLY), nothing has been taken.
e=roundup(start+lease,cell)
local out,P={1,now,e,0,0},{}
for i=1,#L do
  local q=L[i]
  local left=q.max-q.used-q.n
  if left<-MOST then left=-MOST end -- of what only shadows
  if q.kind=='s' then P[i]=RARE.take(P,q,q.n,q.lost,int(left))
  else
    if q.kind=='o' then left=0 end
    P[i]={n=q.n,at=q.cur or '0',lost=q.lost,left=int(left)}
  end
  out[5+i]=left
end
if start>now then
  out[5],P.start,P.long=start,start,true
  for i=1,#L do
    if L[i].start and L[i].start>now then
      P[i].parked=true
      RARE.park(L[i],start,cell)
    end
  end
end
write('R',e,P,keep,cell)
for i=1,#L do
  local q,p=L[i],P[i]
  if q.kind=='s' then RARE.hold(q,e,p,1)
  else
    book(q,q.n,q.cur)
    hold(q,e,q.lost,q.cur,q.n)
  end
  if q.dirty then save(q,keep) end
end
if odd then
  for i=1,#L do out[#out+1]=L[i].max end
  out[#out+1]=odd
end
return out
