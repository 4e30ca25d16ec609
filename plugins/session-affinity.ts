/** Sends the calls of a session to one channel, for the sake of its prompt cache. */
import { z } from 'zod';
import {
  caller,
  definePlugin,
  isObject,
  type Call,
  type Candidate,
  type Health,
  type JsonValue,
  type Target,
} from 'sluice';

const options = z.strictObject({
  /** Headers that name the session, lower case, the most telling first. They count where the body names none. */
  headers: z
    .array(z.string().regex(/^[a-z0-9_-]+$/, 'must be a header in lower case'))
    .default([
      'x-claude-code-session-id',
      'x-opencode-session',
      'session-id',
      'session_id',
      'x-session-id',
      'x-session-affinity',
      'x-amp-thread-id',
      'thread-id',
      'conversation-id',
      'conversation_id',
    ]),
});

/** Characters of a session's name that count: names are shorter, and a body may be long. */
const longestName = 512;

/**
 * The turns of one session go to the same channel and key, where the provider has the beginning of the conversation in its cache: they
 * cost less and begin sooner. When that one is down they go elsewhere, and come back when it is well again. Nothing is kept for it: whoever
 * has the same channels in its config comes to the same choice.
 */
export default definePlugin({
  name: 'session-affinity',
  stage: 'shape',
  options,
  setup({ headers }, { catalog, health }) {
    return function sessionAffinity(call, next) {
      if (call.operation !== 'chat' && call.operation !== 'compact') return next(call);
      if (call.edits.affinity !== undefined) return next(call);
      const candidates = catalog.candidates(call.model, call.operation);
      if (candidates.length === 1 && candidates[0]?.targets.length === 1) return next(call);
      const best = bestOf(candidates, health);
      if (best.length < 2) return next(call);
      const session = sessionOf(call, headers);
      if (session === undefined) return next(call);
      // Whoever shares a name with another caller shall not decide where that one's calls go.
      const { channel, key } = homeOf(hash(`${call.get(caller)?.id ?? ''} ${session}`), best);
      return next(call.with({ affinity: { channel: channel.id, key: key.id, warm: true } }));
    };
  },
});

/** The name of the session that a request belongs to; undefined when it does not say. */
function sessionOf({ body, wire, format }: Call, headers: readonly string[]): string | undefined {
  const user = format.name === 'messages' && isObject(body.metadata) ? body.metadata.user_id : undefined;
  const told = textIn(body.prompt_cache_key) ?? textIn(user);
  if (told !== undefined) return told;
  for (const name of headers) {
    const value = textIn(wire.headers[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

function textIn(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, longestName) : undefined;
}

/** A target with its share of the sessions. */
interface Share {
  readonly target: Target;
  readonly weight: number;
}

/** The targets of the highest rank that has any in health. */
function bestOf(candidates: readonly Candidate[], health: Health): readonly Share[] {
  const found: Share[] = [];
  let rank: number | undefined;
  for (const candidate of candidates) {
    if (candidate.rank !== rank && found.length > 0) break;
    rank = candidate.rank;
    for (const share of sharesOf(candidate, health)) found.push(share);
  }
  return found;
}

function sharesOf({ channel, targets }: Candidate, health: Health): readonly Share[] {
  const weight = Math.max(channel.weight, 1e-9) / targets.length;
  return targets.filter((target) => health.waitMs(target) <= 0).map((target) => ({ target, weight }));
}

/** Rendezvous hashing: each target draws a number for the session, and the highest wins. When one goes only its own sessions move. */
function homeOf(session: number, [first, ...others]: readonly Share[]): Target {
  if (first === undefined) throw new Error('There is no target to choose from.');
  let best = first;
  let highest = scoreOf(session, first);
  for (const other of others) {
    const score = scoreOf(session, other);
    if (score <= highest) continue;
    best = other;
    highest = score;
  }
  return best.target;
}

/** Such that each target wins as often as its weight says. */
function scoreOf(session: number, { target, weight }: Share): number {
  const drawn = (mixed(session ^ hash(`${target.channel.id} ${target.key.id}`)) + 0.5) / 2 ** 32;
  return -weight / Math.log(drawn);
}

/** FNV-1a, 32 bits: quick, and nobody gains by forging it. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** Spreads every bit over all others, as numbers that differ in few of them must not be drawn alike. */
function mixed(value: number): number {
  let bits = value >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
