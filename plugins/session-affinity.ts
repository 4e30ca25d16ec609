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
  /** Names of headers with a session id, in lower case. The first that is present counts, if the body has no session id. */
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

/** Maximum number of characters of a session id that are compared. Limited because a client can send any length. */
const longestName = 512;

/**
 * Sends all turns of a session to the same channel and key, because the provider has the conversation in its prompt cache: turns cost less
 * and begin sooner. While that target fails, turns go to another one. No state is stored: gateways with the same channels make the same
 * choice.
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

/** Returns the session id of a request; undefined if there is none. */
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

/** A target with its weight. */
interface Share {
  readonly target: Target;
  readonly rank: number;
  readonly weight: number;
  /** Hash of the target's name. */
  readonly hash: number;
}

/** Weights of a list of candidates. Cached by list, because the catalog returns the same list, which may have thousands of entries. */
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
 * Selects a target by rendezvous hashing, among the healthy targets of the highest priority: each gets a score for the session, and the
 * highest wins. When a target fails, only its own sessions move. Returns undefined if there is nothing to select.
 */
function homeOf(session: number, shares: readonly Share[], health: Health): Target | undefined {
  let best: Share | undefined;
  let highest = -Infinity;
  for (const share of shares) {
    if (best !== undefined && share.rank !== best.rank) break;
    const score = scoreOf(session, share);
    // Only a few candidates are the best so far, so only a few are looked up.
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

/** Returns the FNV-1a hash (32 bits). Not cryptographic, because a forged session id gains nothing. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

/** Mixes the bits of a number, because numbers that differ in few bits must get unrelated scores. */
function mixed(value: number): number {
  let bits = value >>> 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
