local answer -- what there is to write of an answer's length, see bucket.Answer; all is read before the first write
if tokens>0 then
  local DAY,today=86400000,nil
  -- The greatest length that a step counts; they are 1 wide up to 16, then 8 to each octave.
  local function edge(i)
    if i<16 then return i+1 end
    local e=(i-i%8)/8-1
    return (i-8*e+1)*2^e
  end
  -- A count is three digits. gopher-lua would take 010 for 8, so they are read by hand.
  local function count(s,j)
    local a,b,c=byte(s,j,j+2)
    return a*100+b*10+c-5328
  end
  today=floor(now/DAY)
  local H=call('HMGET',KEYS[3+#L],'t','n','p','d'..int(today))
  local t,left,p,s=H[1] and H[1]+0,(H[2] or 0)-1,(H[3] or 0)+0,H[4] or ''
  if t and t>today then -- the clock is behind what it was
    today=t
    s=call('HGET',KEYS[3+#L],'d'..int(today)) or ''
  end
  local i,e=min(tokens,1048576)-1,0
  while i>=16 do i,e=(i-i%2)/2,e+1 end
  i=3*(i+8*e)
  if #s<i+3 then s=s..string.rep('0',i+3-#s) end
  local c=count(s,i+1)+1
  if c<1000 then s=sub(s,1,i)..format('%03d',c)..sub(s,i+4)
  else
    local a,odd={},0
    for j=1,#s,3 do
      local x=odd+(j==i+1 and c or count(s,j))
      odd=x%2
      a[#a+1]=format('%03d',(x-odd)/2)
    end
    s=table.concat(a)
  end
  answer={p=p,gone={}}
  local a,n={'d'..int(today),s},2
  if today~=t then
    left,a[3],a[4],n=0,'t',int(today),4
    answer.fresh=true
    if t then
      for d=t-6,min(t,today-7) do answer.gone[#answer.gone+1]='d'..int(d) end
    end
  end
  if left<=0 then
    local D=call('HMGET',KEYS[3+#L],'d'..int(today-6),'d'..int(today-5),'d'..int(today-4),'d'..int(today-3),'d'..int(today-2),'d'..int(today-1))
    D[7]=s
    local T,total={},0
    for d=1,7 do
      local s=D[d] or ''
      for j=1,#s,3 do
        local k,x=(j+2)/3,count(s,j)
        while #T<k do T[#T+1]=0 end
        T[k]=T[k]+x
        total=total+x
      end
    end
    answer.p,left=0,20-total
    if total>=20 then
      left=max(1,floor(total/16))
      local rank,from=ceildiv(total*95,100),0
      for k=1,#T do
        local x,to=T[k],edge(k-1)
        if rank<=x then answer.p=from+ceildiv((to-from)*rank,x) break end
        rank,from=rank-x,to
      end
    end
    a[n+1],a[n+2],n='p',int(answer.p),n+2
  end
  a[n+1],a[n+2]='n',int(left)
  answer.set=a
end
