/** The scripts that count in the shared store. Each takes its key names as KEYS, so that a cluster can check them. */
import { maxShare, slices, slotRetry } from './memory.ts';
import { script, type Script } from '../../state/links/shared-link.ts';

/** The member of a subject's holders that stands for the time in which nothing is counted ahead: no process has this name. */
const rest = '!';

/** Time in ms for which nothing is counted ahead for a subject after a call found no room. */
const restTime = 2_000;

/** Time in ms after the end of a slice at which its share has been given back. */
const returnTime = 100;

/** The store's own clock is the only one that all gateways share. */
const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;

/**
 * Counts a call against every minute and every set of slots, or against none; and counts ahead for the calls that follow, where there is
 * ample room.
 *
 * KEYS: the minutes, then the slots, then the holders of each of them. ARGV: milliseconds of a slice, of a lease, number of minutes, name of
 * the process, name of the call; then limit, cost and what is wanted ahead of each minute and each set of slots.
 *
 * A minute is a hash from slice to count. Slots are a sorted set from id to the end of the lease. Holders are a sorted set from the name of a
 * process for which something was counted ahead to the time until which some of it may be free.
 *
 * Returns: the rule that refused (its place in KEYS, 0 when none did), milliseconds until the next try, the slice in which was counted,
 * milliseconds until its end; for each minute its total, the milliseconds until it is empty, and what was counted ahead; for each set of slots how
 * many were taken ahead; and, when the call was refused, the holders.
 */
export const takeScript = script(`${clock}
local slice, lease, minutes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local process, id = ARGV[4], ARGV[5]
local rules = #KEYS / 2
local current = math.floor(now / slice)
local ending = (current + 1) * slice
local refused, retry, totals, newest, running = 0, 0, {}, {}, {}
local limits, costs, wanted = {}, {}, {}

for i = 1, rules do
  limits[i], costs[i], wanted[i] = tonumber(ARGV[3 + 3 * i]), tonumber(ARGV[4 + 3 * i]), tonumber(ARGV[5 + 3 * i])
end

local function within(left, i)
  local ahead = math.min(wanted[i], math.floor(left * ${maxShare}))
  if ahead < math.max(1, costs[i]) then return 0 end
  return ahead
end

local function hold(i, score)
  redis.call('ZADD', KEYS[rules + i], score, process)
  redis.call('PEXPIRE', KEYS[rules + i], math.ceil(lease + slice + ${2 * restTime}))
end

for i = minutes + 1, rules do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  running[i] = redis.call('ZCARD', KEYS[i])
  if running[i] >= limits[i] then
    if refused == 0 then refused = i end
    retry = ${slotRetry}
  end
end

for i = 1, minutes do
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
  local excess = totals[i] + costs[i] - limits[i]
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

local isAhead = false
for i = 1, rules do
  if wanted[i] > 0 then isAhead = true end
end
if isAhead then
  for i = 1, rules do
    local resting = redis.call('ZSCORE', KEYS[rules + i], '${rest}')
    if resting and tonumber(resting) > now then isAhead = false end
  end
end

local ahead = {}
for i = 1, rules do ahead[i] = 0 end

if refused == 0 then
  for i = 1, minutes do
    if isAhead then ahead[i] = within(limits[i] - totals[i] - costs[i], i) end
    local count = costs[i] + ahead[i]
    if count > 0 then
      redis.call('HINCRBY', KEYS[i], current, count)
      redis.call('PEXPIRE', KEYS[i], math.ceil(${slices + 2} * slice))
      totals[i], newest[i] = totals[i] + count, current
    end
    if ahead[i] > 0 then hold(i, ending + ${returnTime}) end
  end
  for i = minutes + 1, rules do
    if isAhead then ahead[i] = within(limits[i] - running[i] - 1, i) end
    for j = 0, ahead[i] do redis.call('ZADD', KEYS[i], now + lease, id .. ':' .. j) end
    redis.call('PEXPIRE', KEYS[i], lease)
    if ahead[i] > 0 then hold(i, now + lease) end
  end
end

local reply = { refused, math.ceil(retry), current, math.floor(ending - now) }
for i = 1, minutes do
  reply[#reply + 1] = totals[i]
  reply[#reply + 1] = newest[i] < 0 and 0 or math.ceil((newest[i] + ${slices + 1}) * slice - now)
  reply[#reply + 1] = ahead[i]
end
for i = minutes + 1, rules do reply[#reply + 1] = ahead[i] end
if refused == 0 then return reply end

local resting = redis.call('ZSCORE', KEYS[rules + refused], '${rest}')
if not resting or tonumber(resting) < now + ${restTime / 2} then
  redis.call('ZADD', KEYS[rules + refused], now + ${restTime}, '${rest}')
  redis.call('PEXPIRE', KEYS[rules + refused], math.ceil(lease + slice + ${2 * restTime}))
end
local seen = { ['${rest}'] = true }
for i = 1, rules do
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[rules + i], now, '+inf')) do
    if not seen[holder] then
      seen[holder] = true
      reply[#reply + 1] = holder
    end
  end
end
return reply
`);

/**
 * Corrects minutes, and gives slots back.
 *
 * KEYS: minutes that are lowered, minutes that are raised, slots, and holders that the process leaves. ARGV: milliseconds of a slice, name of
 * the process, number of each of the four; then slice and amount of each minute that is lowered, amount of each that is raised, number of ids and
 * the ids of each set of slots.
 */
export const giveBackScript = script(`${clock}
local slice, process = tonumber(ARGV[1]), ARGV[2]
local lowered, raised, slots, left = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local key, at = 0, 6

for i = 1, lowered do
  key = key + 1
  local counted = tonumber(redis.call('HGET', KEYS[key], ARGV[at + 1]) or 0)
  if counted > 0 then redis.call('HINCRBY', KEYS[key], ARGV[at + 1], -math.min(counted, tonumber(ARGV[at + 2]))) end
  at = at + 2
end
for i = 1, raised do
  key = key + 1
  at = at + 1
  redis.call('HINCRBY', KEYS[key], math.floor(now / slice), ARGV[at])
  redis.call('PEXPIRE', KEYS[key], math.ceil(${slices + 2} * slice))
end
for i = 1, slots do
  key = key + 1
  at = at + 1
  local ids = tonumber(ARGV[at])
  for j = 1, ids do redis.call('ZREM', KEYS[key], ARGV[at + j]) end
  at = at + ids
end
for i = 1, left do
  key = key + 1
  redis.call('ZREM', KEYS[key], process)
end
return key
`);

/**
 * Renews the leases of slots, and the time of the process among the holders.
 *
 * KEYS: slots, then holders. ARGV: milliseconds of a lease, name of the process, number of sets of slots, 1 to renew also what the store has
 * forgotten; then number of ids and the ids of each set. Returns the places of the ids that the store has forgotten, counted over all sets.
 */
export const renewScript = script(`${clock}
local lease, process, slots, anyway = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local at, place, lost = 4, 0, {}
for i = 1, slots do
  at = at + 1
  local ids = tonumber(ARGV[at])
  local isHeld = false
  for j = 1, ids do
    place = place + 1
    if anyway or redis.call('ZSCORE', KEYS[i], ARGV[at + j]) then
      redis.call('ZADD', KEYS[i], now + lease, ARGV[at + j])
      isHeld = true
    else
      lost[#lost + 1] = place
    end
  end
  if isHeld then redis.call('PEXPIRE', KEYS[i], lease) end
  at = at + ids
end
for i = slots + 1, #KEYS do
  redis.call('ZADD', KEYS[i], now + lease, process)
  redis.call('PEXPIRE', KEYS[i], lease + ${2 * restTime})
end
return lost
`);

/** Leaves a message for processes, which {@link mailboxOf} names. KEYS: their lists. ARGV: the message, milliseconds for which it is kept. */
export const recallScript = script(`
for i = 1, #KEYS do
  redis.call('RPUSH', KEYS[i], ARGV[1])
  redis.call('LTRIM', KEYS[i], -100, -1)
  redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return #KEYS
`);

/**
 * Returns which of some processes are still among the holders of some subjects. KEYS: the holders of each subject. ARGV: 1 to strike the
 * processes off in any case, then the processes.
 */
export const holdersScript = script(`
local left = {}
for i = 2, #ARGV do
  local isLeft = false
  for j = 1, #KEYS do
    if redis.call('ZSCORE', KEYS[j], ARGV[i]) then isLeft = true end
    if ARGV[1] == '1' then redis.call('ZREM', KEYS[j], ARGV[i]) end
  end
  if isLeft then left[#left + 1] = ARGV[i] end
end
return left
`);

/** All of them: a new connection brings them along, so that each is known from its first use. */
export const scripts: readonly Script[] = [
  takeScript,
  giveBackScript,
  renewScript,
  recallScript,
  holdersScript,
];
