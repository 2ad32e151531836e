-- KEYS: ctl, record, limit... ARGV: lease, keep, cell, deadline of the reserve or 0,
-- then of each limit: b actual lost rate per burst | w actual lost max start start start start; nonce
local lease,keep,cell,D=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3]),tonumber(ARGV[4])
local L=load(5,3)
local state,e,rec=record(keep)
if state=='S' then return {4,now} end
if not state and D>0 and now>D+keep then return {5,now} end
local P,bad={},nil
if state then
  P,bad=parts(rec,#L)
  if bad then return bad end
end
for i=1,#L do
  bad=advance(L[i],false)
  if bad then return redis.error_reply(bad) end
end
local live=state and e>now
local dead=max(e or 0,D)
if dead==0 then dead=now+lease end
-- A settled record stays as long as a settle or a late reserve of this id may arrive.
write('S',dead,{},keep,cell)
local out={live and 1 or state and 2 or 3,now}
for i=1,#L do
  local q,p=L[i],P[i]
  local d,at=q.n,q.cur
  if p then
    at=p.at
    if live or p.lost=='c' then d=d-p.n end -- what was reserved is still among the used
    if live then hold(q,e,p.lost,at,-p.n) end
  end
  if q.kind=='w' and tonumber(at)<q.lo then -- the period is no longer kept: what is owed goes to this one
    d,at=max(0,d),q.cur
  end
  book(q,d,at)
  out[2+i]=q.max-q.used
  if q.dirty then save(q,keep) end
end
return out
