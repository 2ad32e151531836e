-- KEYS as in reserve, and behind the limits that of the answers where there is one to learn from.
-- ARGV: lease, keep, cell, deadline of the reserve or 0, the answer's tokens or 0, number of override
-- fields, field..., then of each limit as in reserve, the amount being the actual one; nonce
local lease,keep,cell,D,tokens=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3]),tonumber(ARGV[4]),tonumber(ARGV[5])
local over=6
local n=ARGV[over]+0
local L=load(over+1+n,3,#KEYS-2-(n>0 and 1 or 0)-(tokens>0 and 1 or 0))
local state,e,rec=record(keep)
if state=='S' then return {4,now} end
if not state and D>0 and now>D+keep then return {5,now} end
local P,bad={},nil
if state then
  P,bad=parts(rec,#L)
  if bad then return bad end
end
--@override
for i=1,#L do
  bad=advance(L[i],false)
  if bad then return redis.error_reply(bad) end
end
--@answer
local live=state and e>now
local dead=max(e or 0,D)
if dead==0 then dead=now+lease end
-- A settled record stays as long as a settle or a late reserve of this id may arrive.
write('S',dead,{},keep,cell)
local out={live and 1 or state and 2 or 3,now}
for i=1,#L do
  local q,p,kind=L[i],P[i],L[i].kind
  if kind=='s' or kind=='o' or p and p.more then
    q.more_used=RARE.settle(q,p,live,e)
  else
    local d,at=q.n,q.cur
    if p then
      at=p.at
      if live or p.lost=='c' then d=d-p.n end -- what was reserved is still among the used
      if live then hold(q,e,p.lost,at,-p.n) end
    end
    if (kind=='w' or kind=='r') and tonumber(at)<q.lo then -- the period is no longer kept: what is owed goes to this one
      d,at=max(0,d),q.cur
    end
    book(q,d,at)
  end
  if p and p.parked and P.start>now then RARE.unpark(q,P.start,cell) end
  if kind=='r' or kind=='o' then RARE.total(q) end
  out[2+i]=q.max-q.used
  if q.dirty then save(q,keep) end
end
for i=1,#L do
  local q=L[i]
  if q.kind=='o' then out[#out+1]=q.more_used>0 and RARE.burns(q) and 1 or 0 end
end
if answer then
  out[#out+1]=answer.p
  if #answer.gone>0 then call('HDEL',KEYS[3+#L],unpack(answer.gone)) end
  call('HSET',KEYS[3+#L],unpack(answer.set))
  if answer.fresh then call('PEXPIRE',KEYS[3+#L],int(8*86400000)) end
end
return out
