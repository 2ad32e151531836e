  -- When a limit that denies would have room for q.n, or start it soon enough, if nobody else acts: by
  -- refill, by lease cells that give back, by cells that no longer count, or by the next period.
  local function when(q)
    local E,kind,queue={},q.kind,q.queue or 0
    for f,v in pairs(q.r) do
      local lost,at,place=match(f,'^(%a)(%d+):?(.*)$')
      if lost=='r' and (kind~='w' or place==q.cur) then E[#E+1]={at=tonumber(at),v=v,place=place} end
    end
    local function sorted() table.sort(E,function(x,y) return x.at<y.at end) end
    if kind=='w' then
      sorted()
      local used=q.used
      for i=1,#E do
        used=used-E[i].v
        if q.n<=q.max-used then return min(E[i].at,q.fin) end
      end
      return q.fin
    end
    if kind=='r' or kind=='c' then
      if kind=='r' then
        local M={}
        for f,v in pairs(q.m) do M[f]=v end
        for i=1,#E do -- what a lease gives back before its cell is over doesn't leave with the cell
          local x=E[i]
          local f='w'..x.place
          local over=x.place+q.cell+q.window
          x.v=min(x.v,M[f] or 0)
          if x.at>=over then x.v=0 elseif M[f] then M[f]=M[f]-x.v end
        end
        for f,v in pairs(M) do E[#E+1]={at=sub(f,2)+q.cell+q.window,v=v} end
      end
      sorted()
      -- From the last back, so that no sum is above 2^53.
      local used,at=0,now
      for i=#E,1,-1 do
        at=E[i].at
        used=min(MOST,used+E[i].v)
        if q.n>q.max-used then return at end
      end
      return at
    end
    sorted()
    local first=q.bound and q.bound-queue or 0
    if kind=='s' then return max(first,RARE.when(q,E)) end
    if q.n<=q.max-q.used then return max(first,now) end
    local lacks=q.n-(q.max-q.u) -- and q.f/q.s more
    local function refilled()
      local m=lacks%q.a
      return min(MOST,now+(lacks-m)/q.a*q.s+ceildiv(m*q.s+q.f,q.a))-queue
    end
    for i=1,#E do
      local at=refilled()
      if at<=E[i].at then return max(first,now,at) end
      lacks=lacks-E[i].v
      if refilled()<=E[i].at then return max(first,E[i].at) end
    end
    return max(first,now,refilled())
  end

  -- When q.n could start if it were booked now, or nil: by refill alone, as leases may be used up.
  local function starts(q)
    if q.kind~='b' and q.kind~='s' then return end
    local d=0
    if q.kind=='s' then d=rare().delay(q,q)
    elseif q.n>q.max-q.used then
      if not q.queue or q.n>q.max then return end
      local lacks=q.n-(q.max-q.u)
      local m=lacks%q.a
      d=(lacks-m)/q.a*q.s+ceildiv(m*q.s+q.f,q.a)
    end
    return d and max(min(MOST,now+d),q.bound or 0)
  end
