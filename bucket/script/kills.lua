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
