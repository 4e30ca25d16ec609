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
      const session = sessionOf(call, headers);
      if (session === undefined) return next(call);
      // Scoped to the caller, so that a caller who uses the same name as another cannot decide where the other's calls go.
      const home = homeOf(hash(`${call.get(caller)?.id ?? ''} ${session}`), sharesOf(candidates), health);
      if (home === undefined) return next(call);
      return next(call.with({ affinity: { channel: home.channel.id, key: home.key.id, warm: true } }));
    };
  },
});

/** The name of the session that a request belongs to; undefined when it does not say. */
function sessionOf({ body, wire, format }: Call, headers: readonly string[]): string | undefined {
  const user = format.name === 'messages' && isObject(body.metadata) ? body.metadata.user_id : undefined;
  const id = textIn(body.prompt_cache_key) ?? textIn(user);
  if (id !== undefined) return id;
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
  readonly rank: number;
  readonly weight: number;
  /** Hash of its name. */
  readonly hash: number;
}

/** The shares of a list of candidates. The catalog gives the same one again, which may have thousands. */
const known = new WeakMap<readonly Candidate[], readonly Share[]>();

function sharesOf(candidates: readonly Candidate[]): readonly Share[] {
  let shares = known.get(candidates);
  if (shares === undefined) {
    shares = candidates.flatMap(({ channel, targets, rank }) => {
      const weight = Math.max(channel.weight, 1e-9) / targets.length;
      return targets.map((target) => ({
        target,
        rank,
        weight,
        hash: hash(`${channel.id} ${target.key.id}`),
      }));
    });
    known.set(candidates, shares);
  }
  return shares;
}

/**
 * Rendezvous hashing among the targets of the highest rank that has any in health: each draws a number for the session, and the highest
 * wins. When one goes only its own sessions move. Undefined where there is nothing to choose.
 */
function homeOf(session: number, shares: readonly Share[], health: Health): Target | undefined {
  let best: Share | undefined;
  let highest = -Infinity;
  for (const share of shares) {
    if (best !== undefined && share.rank !== best.rank) break;
    const score = scoreOf(session, share);
    // Few are the best so far, and so few are asked about.
    if (score <= highest || health.waitMs(share.target) > 0) continue;
    best = share;
    highest = score;
  }
  const isOther = (share: Share): boolean =>
    share !== best && share.rank === best?.rank && health.waitMs(share.target) <= 0;
  return shares.some(isOther) ? best?.target : undefined;
}

/** Returns the score of a share for weighted rendezvous hashing: each target wins in proportion to its weight. */
function scoreOf(session: number, share: Share): number {
  const drawn = (mixed(session ^ share.hash) + 0.5) / 2 ** 32;
  return -share.weight / Math.log(drawn);
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
