-- KEYS as in reserve. ARGV: lease, keep, cell, number of override fields, field...,
-- then of each limit as in reserve; nonce
local lease,keep,cell=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3])
local over=4
local n=ARGV[over]+0
local L=load(over+1+n,3,n>0 and #KEYS-3 or #KEYS-2)
local state,e0,rec=record(keep)
if not state then return {4,now,0} end
if state=='S' then return {3,now,0} end
local e=roundup(now+lease,cell)
local live=e0>now
if live and e<=e0 then return {1,now,e0} end
local P,bad=parts(rec,#L)
if bad then return bad end
--@override
for i=1,#L do
  bad=advance(L[i],false)
  if bad then return redis.error_reply(bad) end
end
for i=1,#L do
  local q,p=L[i],P[i]
  local more,sum=p.more,p.n
  if more then sum=RARE.sum(p) end
  if live then
    if more then RARE.hold(q,e0,p,-1) else hold(q,e0,p.lost,p.at,-p.n) end
  elseif p.lost=='r' then -- it had been given back
    if q.kind=='s' then
      local t=RARE.take(P,q,sum)
      p.n,p.at,p.more=t.n,t.at,t.more
    else
      p.n,p.at,p.more=sum,q.cur or '0',nil
      book(q,sum,p.at)
    end
  end
  if p.more then RARE.hold(q,e,p,1) else hold(q,e,p.lost,p.at,p.n) end
end
write('R',e,P,keep,cell)
for i=1,#L do
  if L[i].dirty then save(L[i],keep) end
end
return {live and 1 or 2,now,e}
