-- KEYS: ctl, record, limit... ARGV: lease, keep, cell,
-- then of each limit: b - lost rate per burst | w - lost max start start start start; nonce
local lease,keep,cell=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3])
local L=load(4,3)
local state,e0,rec=record(keep)
if not state then return {4,now,0} end
if state=='S' then return {3,now,0} end
local e=roundup(now+lease,cell)
local live=e0>now
if live and e<=e0 then return {1,now,e0} end
local P,bad=parts(rec,#L)
if bad then return bad end
for i=1,#L do
  bad=advance(L[i],false)
  if bad then return redis.error_reply(bad) end
  if not live and P[i].lost=='r' then P[i].at=L[i].cur or '0' end
end
write('R',e,P,keep,cell)
for i=1,#L do
  local q,p=L[i],P[i]
  if live then hold(q,e0,p.lost,p.at,-p.n)
  elseif p.lost=='r' then book(q,p.n,p.at) end -- it had been given back
  hold(q,e,p.lost,p.at,p.n)
  if q.dirty then save(q,keep) end
end
return {live and 1 or 2,now,e}
