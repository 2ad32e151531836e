-- KEYS as in reserve. ARGV: lease (0: the deadline stays), keep, cell, and on as in reserve, the
-- amounts being totals.
local lease,keep,cell,kills=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3]),tonumber(ARGV[4])
local over=5+kills
local n=ARGV[over]+0
local L=load(over+1+n,3,n>0 and #KEYS-3 or #KEYS-2)
local state,e0,rec=record(keep)
if not state then return {6,now,0,0,0} end
if state=='S' then return {5,now,0,0,0} end
--@kills
local live=e0>now
if not live and lease==0 then return {7,now,0,0,0} end
local P,bad=parts(rec,#L)
if bad then return bad end
--@override
--@when
local R=rare()

local by,at,never=nil,0,nil
for i=1,#L do
  bad=advance(L[i],true)
  if bad then return redis.error_reply(bad) end
end
for i=1,#L do
  local q,p=L[i],P[i]
  local has=R.sum(p)
  local more=max(0,q.n-has)
  p.gone=not live and p.lost=='r' -- it has been given back, so all is taken again
  if p.gone then more=more+has end
  q.n,q.queue,q.bound=more,nil,nil -- who runs already doesn't wait for those who are to start
  if more>0 and more>q.max-q.used and not q.shadow and q.kind~='o' then
    if more>q.max then never=never or i
    else
      local t=when(q)
      if t>at then by,at=i,t end
    end
  end
end
local denied=never or by
local out={denied and 3 or live and 1 or 2,now,0,never or by or 0,by and not never and at-now or 0}
local e=e0
if lease>0 then e=max(e0,roundup(now+lease,cell)) end
local change=not live or e>e0
for i=1,#L do
  local q=L[i]
  out[5+i]=q.kind=='o' and 0 or max(-MOST,q.max-q.used-(denied and 0 or q.n))
  if q.n>0 then change=true end
end
if not denied and change then
  for i=1,#L do
    local q,p=L[i],P[i]
    if live then R.hold(q,e0,p,-1) end
    if p.gone then p.n,p.at,p.more=0,q.cur or '0',nil end
    if q.n>0 then
      if q.kind=='s' then
        local t=R.take(P,q,q.n)
        R.add(P,p,t.n,t.at)
        if t.more then R.add(P,p,t.more[1].n,'*') end
      else
        book(q,q.n,q.cur)
        R.add(P,p,q.n,q.cur or '0')
      end
    end
    R.hold(q,e,p,1)
  end
  write('R',e,P,keep,cell)
end
if not denied then out[3]=e end
for i=1,#L do
  local q=L[i]
  if q.kind=='o' and not denied then
    R.total(q)
    out[5+i]=q.max-q.used
  end
  if q.dirty then save(q,keep) end
end
if odd then
  for i=1,#L do out[#out+1]=L[i].max end
  out[#out+1]=odd
end
for i=1,#L do
  local q=L[i]
  if q.kind=='o' then
    local tripped=not denied and q.n>0 and R.burns(q)
    out[#out+1]=tripped and 1 or 0
  end
end
return out
