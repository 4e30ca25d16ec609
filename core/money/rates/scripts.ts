import { slices, slotRetry } from './memory.ts';
import { script, type Script } from '../../state/links/shared-link.ts';

/** The store's own clock is the only one that all gateways share. */
const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Counts a call against every minute and every set of slots, or against none.
 *
 * KEYS: the minutes, then the slots. ARGV: milliseconds of a slice, of a lease, number of minutes; limit and cost of each minute; limit
 * and id of each slot. A minute is a hash from slice to count, slots are a sorted set from id to the end of the lease.
 * Gives: which rule refused (its place in KEYS, 0 when none did), milliseconds until the next try, the slice in which was counted, and for
 * each minute its total and the milliseconds until it is empty.
 */
export const takeScript = script(`${clock}
local slice = tonumber(ARGV[1])
local lease = tonumber(ARGV[2])
local minutes = tonumber(ARGV[3])
local current = math.floor(now / slice)
local refused, retry, totals, newest = 0, 0, {}, {}

for i = minutes + 1, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[2 + 2 * i]) then
    if refused == 0 then refused = i end
    retry = ${slotRetry}
  end
end

for i = 1, minutes do
  local limit, cost = tonumber(ARGV[2 + 2 * i]), tonumber(ARGV[3 + 2 * i])
  local fields = redis.call('HGETALL', KEYS[i])
  local passed, live = {}, {}
  totals[i], newest[i] = 0, -1
  for j = 1, #fields, 2 do
    local at, count = tonumber(fields[j]), tonumber(fields[j + 1])
    if at < current - ${slices} then
      passed[#passed + 1] = fields[j]
    else
      totals[i] = totals[i] + count
      live[#live + 1] = { at, count }
      if at > newest[i] then newest[i] = at end
    end
  end
  if #passed > 0 then redis.call('HDEL', KEYS[i], unpack(passed)) end
  local excess = totals[i] + cost - limit
  if excess > 0 then
    if refused == 0 then refused = i end
    table.sort(live, function(a, b) return a[1] < b[1] end)
    for j = 1, #live do
      excess = excess - live[j][2]
      if excess <= 0 then
        retry = math.max(retry, (live[j][1] + ${slices + 1}) * slice - now)
        break
      end
    end
  end
end

if refused == 0 then
  for i = 1, minutes do
    local cost = tonumber(ARGV[3 + 2 * i])
    if cost > 0 then
      redis.call('HINCRBY', KEYS[i], current, cost)
      redis.call('PEXPIRE', KEYS[i], math.ceil(${slices + 2} * slice))
      totals[i], newest[i] = totals[i] + cost, current
    end
  end
  for i = minutes + 1, #KEYS do
    redis.call('ZADD', KEYS[i], now + lease, ARGV[3 + 2 * i])
    redis.call('PEXPIRE', KEYS[i], lease)
  end
end

local reply = { refused, math.ceil(retry), current }
for i = 1, minutes do
  reply[#reply + 1] = totals[i]
  reply[#reply + 1] = newest[i] < 0 and 0 or math.ceil((newest[i] + ${slices + 1}) * slice - now)
end
return reply
`);

/** Corrects a minute. KEYS: it. ARGV: milliseconds of a slice, the difference, the slice in which was counted. */
export const correctScript = script(`${clock}
local slice, difference = tonumber(ARGV[1]), tonumber(ARGV[2])
if difference > 0 then
  redis.call('HINCRBY', KEYS[1], math.floor(now / slice), difference)
  redis.call('PEXPIRE', KEYS[1], math.ceil(${slices + 2} * slice))
else
  local counted = tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or 0)
  if counted > 0 then redis.call('HINCRBY', KEYS[1], ARGV[3], -math.min(counted, -difference)) end
end
return 1
`);

/** Renews leases, also of slots that the store has forgotten. KEYS: the slots. ARGV: milliseconds of a lease, then an id for each. */
export const renewScript = script(`${clock}
local lease = tonumber(ARGV[1])
for i = 1, #KEYS do
  redis.call('ZADD', KEYS[i], now + lease, ARGV[1 + i])
  redis.call('PEXPIRE', KEYS[i], lease)
end
return #KEYS
`);

/** All of them: a new connection brings them along, so that each is known from its first use. */
export const scripts: readonly Script[] = [takeScript, correctScript, renewScript];
