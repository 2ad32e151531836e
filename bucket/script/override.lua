local odd=n>0 and 0 -- the number of the first limit whose override is none
if n>0 then
  local O=call('HMGET',KEYS[#KEYS],unpack(ARGV,over+1,over+n))
  for i=1,n do
    if O[i] and not rare().override(L[i],O[i]) and odd==0 then odd=i end
  end
end
