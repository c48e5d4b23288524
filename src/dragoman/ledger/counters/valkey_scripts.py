"""What the counters ask of a Valkey, as scripts: one call is one script, of which nobody sees half.

The arithmetic is that of `leases.share`, written once more; the suite of the counters compares them. A share is a field
`h:HOLDER` of its account's hash: amount (`x` of who has ended), number, seen, told.
"""

from __future__ import annotations

from typing import Final

from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS

_HEAD: Final = """
local life_key, awaited_key, account_key, listed_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local server, known = ARGV[1], ARGV[2]
local life = redis.call('HMGET', life_key, 'epoch', 'server', 'began')
local now = tonumber(ARGV[3])
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
  for place = 4, #ARGV do redis.call('SADD', awaited_key, ARGV[place]) end
  return known
end
return life[1]
"""
)

#: What an account is filled with, from the fifteenth value on: closed, adjusted, how many holders have not ended, each
#: of them and what it used, who has ended. Gives what is closed.
_FILL: Final = """
local function fill()
  local closed, count = tonumber(ARGV[15]), tonumber(ARGV[17])
  local live, gone = {}, {}
  for place = 18 + 2 * count, #ARGV do gone[ARGV[place]] = true end
  for place = 18, 17 + 2 * count, 2 do live[ARGV[place]] = tonumber(ARGV[place + 1]) end
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
  redis.call('HSET', account_key, 'seeded', '1', 'closed', whole(closed), 'adjusted', ARGV[16])
  return closed
end
"""

TAKE: Final = (
    _HEAD
    + _FILL
    + f"""
if not goes_on then return 'lost' end
local account, who, call, told = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local want, at_least, limit, generation = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
local forget_at, is_recorded, announces = ARGV[12], ARGV[13] == '1', ARGV[14] == '1'
local settles = redis.call('EXISTS', awaited_key) == 1
if settles and now >= tonumber(life[3]) + {LEASE_SECONDS} then redis.call('DEL', awaited_key); settles = false end
local fields = redis.call('HMGET', account_key, 'life', 'seeded', 'closed', 'adjusted', 'quota', 'generation')
if fields[1] ~= known then
  if is_recorded or not fields[1] then
    redis.call('DEL', account_key)
    fields = {{known, is_recorded and '0' or '1', '0', '0', ARGV[10], generation}}
    redis.call('HSET', account_key, 'life', known, 'seeded', fields[2], 'closed', '0', 'adjusted', '0',
      'quota', fields[5], 'generation', fields[6])
    if forget_at ~= '' then redis.call('PEXPIREAT', account_key, forget_at) end
  else
    redis.call('HSET', account_key, 'life', known)
  end
  redis.call('SADD', listed_key, account)
end
local was_cold = 0
if fields[2] ~= '1' and not settles and not announces then
  if #ARGV < 15 then return 'cold' end
  fields[3], fields[4], was_cold = fill(), ARGV[16], 1
end
local mine = share_of(who)
if mine and (not mine.amount or call <= mine.number) then return 'stale' end
if settles or (announces and fields[2] ~= '1') then
  write(who, told, call, told)
  return string.format('settling|%.0f|1|0|0', told)
end
local quota = tonumber(fields[5])
if #generation > #fields[6] or (#generation == #fields[6] and generation > fields[6]) then
  redis.call('HSET', account_key, 'quota', ARGV[10], 'generation', generation)
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
local mine = share_of(ARGV[4])
if not goes_on or fields[1] ~= known or not mine or not mine.amount then return 0 end
write(ARGV[4], nil, mine.number, tonumber(ARGV[5]))
if fields[2] == '1' then
  redis.call('HSET', account_key, 'closed', whole(tonumber(fields[3]) + tonumber(ARGV[5])))
end
return 1
"""
)

EXPIRE: Final = (
    _HEAD
    + f"""
local mine = share_of(ARGV[4])
if not goes_on or redis.call('HGET', account_key, 'life') ~= known then return 0 end
if not mine or not mine.amount or mine.seen > now - {SILENT_SECONDS} then return 0 end
local text = string.format('%s|%.0f|%.3f|%.0f', ARGV[5], mine.number, mine.seen, mine.told)
redis.call('HSET', account_key, 'h:' .. ARGV[4], text)
return 1
"""
)

CORRECT: Final = (
    _HEAD
    + """
local fields = redis.call('HMGET', account_key, 'life', 'seeded')
if not goes_on or fields[1] ~= known or fields[2] ~= '1' then return 0 end
return redis.call('HSET', account_key, 'adjusted', ARGV[4])
"""
)
