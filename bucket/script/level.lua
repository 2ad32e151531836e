-- KEYS: ctl, limit, overrides where a field is given. ARGV: number of override fields, field, the limit
-- as in reserve; nonce. Only reads.
local over=1
local n=ARGV[over]+0
local L=load(over+1+n,2,1)
--@override
local q=L[1]
local bad=advance(q,true)
if bad then return redis.error_reply(bad) end
local held=0
for _,v in pairs(q.r) do held=held+v end
return {now,q.max-q.used,min(held,MOST)}
