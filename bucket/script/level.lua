-- KEYS: ctl, limit. ARGV: the limit as in reserve; nonce. Only reads.
local q=load(1,2)[1]
local bad=advance(q,true)
if bad then return redis.error_reply(bad) end
local held=0
for _,v in pairs(q.r) do held=held+v end
return {now,q.max-q.used,min(held,MOST)}
