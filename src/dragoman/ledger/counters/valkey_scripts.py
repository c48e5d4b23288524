"""The counters' Lua scripts for Valkey. Each call is one script, so it is atomic.

The arithmetic is that of `leases.share`, written once more in Lua. The counters' test suite compares the two. A share
is a field `h:HOLDER` of its account's hash: amount (`x` if the holder has ended), number, time seen, spend reported. A
script's arguments are one text, words with a space between them and `-` for none: each further argument costs the
caller and the server as much as ten words.
"""

from __future__ import annotations

from typing import Final

from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS

_HEAD: Final = """
local life_key, awaited_key, listed_key, account_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local given = {}
for word in string.gmatch(ARGV[1], '%S+') do given[#given + 1] = word end
local server, known = given[1], given[2]
local life = redis.call('HMGET', life_key, 'epoch', 'server', 'began')
local now = tonumber(given[3])
if not now then local t = redis.call('TIME'); now = tonumber(t[1]) + tonumber(t[2]) / 1000000 end
local goes_on = life[1] and life[2] == server and life[1] == known
local function whole(number) return string.format('%.0f', number) end
local function read(text)
  local amount, number, seen, told = string.match(text, '^(.-)|(.-)|(.-)|(.-)$')
  return {amount = tonumber(amount), number = tonumber(number), seen = tonumber(seen), told = tonumber(told)}
end
local function write(holder, amount, number, told)
  local text = string.format('%s|%.0f|%.3f|%.0f', amount and whole(amount) or 'x', number, now, told)
  redis.call('HSET', account_key, 'h:' .. holder, text)
end
local function share_of(holder)
  local text = redis.call('HGET', account_key, 'h:' .. holder)
  return text and read(text)
end
"""

BEGIN: Final = (
    _HEAD
    + """
if not (life[1] and life[2] == server) then
  redis.call('DEL', life_key, awaited_key, listed_key)
  redis.call('HSET', life_key, 'epoch', known, 'server', server, 'began', string.format('%.6f', now))
  for place = 4, #given do redis.call('SADD', awaited_key, given[place]) end
  return known
end
return life[1]
"""
)

#: What an account is filled with, from the fifteenth value on: closed, adjusted, how many holders have not ended, each
#: of them and what it used, who has ended. Gives what is closed.
_FILL: Final = """
local function fill()
  local closed, count = tonumber(given[15]), tonumber(given[17])
  local live, gone = {}, {}
  for place = 18 + 2 * count, #given do gone[given[place]] = true end
  for place = 18, 17 + 2 * count, 2 do live[given[place]] = tonumber(given[place + 1]) end
  local all = redis.call('HGETALL', account_key)
  for place = 1, #all, 2 do
    if string.sub(all[place], 1, 2) == 'h:' then
      local holder, share = string.sub(all[place], 3), read(all[place + 1])
      local used = live[holder]
      if gone[holder] then write(holder, nil, share.number, share.told)
      elseif not used then used = 0 -- it came after the seed was read
      elseif share.amount then write(holder, math.max(share.amount, used), share.number, share.told)
      else closed = closed + math.max(used, share.told) end
      live[holder] = nil
    end
  end
  for holder, used in pairs(live) do write(holder, used, 0, used) end
  for holder in pairs(gone) do
    if not share_of(holder) then write(holder, nil, 0, 0) end
  end
  redis.call('HSET', account_key, 'seeded', '1', 'closed', whole(closed), 'adjusted', given[16])
  return closed
end
"""

TAKE: Final = (
    _HEAD
    + _FILL
    + f"""
if not goes_on then return 'lost' end
local account, who, call, told = given[4], given[5], tonumber(given[6]), tonumber(given[7])
local want, at_least, limit, generation = tonumber(given[8]), tonumber(given[9]), tonumber(given[10]), given[11]
local forget_at, is_recorded, announces = given[12], given[13] == '1', given[14] == '1'
local settles = redis.call('EXISTS', awaited_key) == 1
if settles and now >= tonumber(life[3]) + {LEASE_SECONDS} then redis.call('DEL', awaited_key); settles = false end
local fields = redis.call('HMGET', account_key, 'life', 'seeded', 'closed', 'adjusted', 'quota', 'generation')
if fields[1] ~= known then
  if is_recorded or not fields[1] then
    redis.call('DEL', account_key)
    fields = {{known, is_recorded and '0' or '1', '0', '0', given[10], generation}}
    redis.call('HSET', account_key, 'life', known, 'seeded', fields[2], 'closed', '0', 'adjusted', '0',
      'quota', fields[5], 'generation', fields[6])
    if forget_at ~= '-' then redis.call('PEXPIREAT', account_key, forget_at) end
  else
    redis.call('HSET', account_key, 'life', known)
  end
  redis.call('SADD', listed_key, account)
end
local was_cold = 0
if fields[2] ~= '1' and not settles and not announces then
  if #given < 15 then return 'cold' end
  fields[3], fields[4], was_cold = fill(), given[16], 1
end
local mine = share_of(who)
if mine and (not mine.amount or call <= mine.number) then return 'stale' end
if settles or (announces and fields[2] ~= '1') then
  write(who, told, call, told)
  return string.format('settling|%.0f|1|0|0', told)
end
local quota = tonumber(fields[5])
if #generation > #fields[6] or (#generation == #fields[6] and generation > fields[6]) then
  redis.call('HSET', account_key, 'quota', given[10], 'generation', generation)
  quota = limit
end
local others, neighbours = tonumber(fields[3]) + tonumber(fields[4]), 0
local all = redis.call('HGETALL', account_key)
for place = 1, #all, 2 do
  if string.sub(all[place], 1, 2) == 'h:' and all[place] ~= 'h:' .. who then
    local other = read(all[place + 1])
    if other.amount then others = others + other.amount; neighbours = neighbours + 1 end
  end
end
local room, amount, outcome, is_tight = quota - others, told, 'granted', 1
if told + at_least > room then
  if at_least > 0 then outcome = 'refused' end
else
  local left, ahead = room - told - at_least, 0
  if left * 10 >= quota then
    is_tight, ahead = 0, left
    local parts = 2 * (neighbours + 1)
    if neighbours > 0 then ahead = (left - left % parts) / parts end
    ahead = math.min(math.max(want - at_least, 0), ahead)
  end
  amount = told + at_least + ahead
end
write(who, amount, call, told)
return string.format('%s|%.0f|%d|%.0f|%d', outcome, amount, is_tight, others, was_cold)
"""
)

FOLD: Final = (
    _HEAD
    + """
local fields = redis.call('HMGET', account_key, 'life', 'seeded', 'closed')
local mine = share_of(given[4])
if not goes_on or fields[1] ~= known or (mine and not mine.amount) then return 0 end
if not mine and fields[2] ~= '1' then return 0 end -- who never asked has what it used while nobody counted
write(given[4], nil, mine and mine.number or 0, tonumber(given[5]))
if fields[2] == '1' then
  redis.call('HSET', account_key, 'closed', whole(tonumber(fields[3]) + tonumber(given[5])))
end
return 1
"""
)

EXPIRE: Final = (
    _HEAD
    + f"""
local mine, fields = share_of(given[4]), redis.call('HMGET', account_key, 'life', 'seeded')
if not goes_on or fields[1] ~= known then return 0 end
if not mine and fields[2] == '1' and tonumber(given[5]) > 0 then
  write(given[4], tonumber(given[5]), 0, tonumber(given[5]))
  return 1
end
if not mine or not mine.amount or mine.seen > (tonumber(given[6]) or now - {SILENT_SECONDS}) then return 0 end
local text = string.format('%s|%.0f|%.3f|%.0f', given[5], mine.number, mine.seen, mine.told)
redis.call('HSET', account_key, 'h:' .. given[4], text)
return 1
"""
)

CORRECT: Final = (
    _HEAD
    + """
local fields = redis.call('HMGET', account_key, 'life', 'seeded')
if not goes_on or fields[1] ~= known or fields[2] ~= '1' then return 0 end
return redis.call('HSET', account_key, 'adjusted', given[4])
"""
)

CLOSE_AT: Final = (
    _HEAD
    + """
local fields = redis.call('HMGET', account_key, 'life', 'seeded', 'closed')
if not goes_on or fields[1] ~= known or fields[2] ~= '1' or tonumber(fields[3]) >= tonumber(given[4]) then return 0 end
return redis.call('HSET', account_key, 'closed', given[4])
"""
)
