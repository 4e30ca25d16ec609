/** Removes request fields that a provider has refused, and remembers them. */
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  callKey,
  definePlugin,
  GatewayError,
  formatFor,
  plainMember,
  type Call,
  type GatewayEvent,
  type Log,
  type Next,
  type RefusedMember,
  type TakenMember,
  type Target,
} from 'sluice';
import { Memory } from './memory.ts';
import { namedMembers } from './named-members.ts';
import { traitOf } from './trait.ts';

const options = z.strictObject({
  /** Milliseconds for which a field is left out of requests after the provider has refused it. */
  ttl: z
    .int()
    .min(1)
    .default(24 * 60 * 60 * 1000),
  /** Maximum number of second attempts for a model of a channel within an hour, in all processes on one database. 0: no second attempts. */
  perHour: z.int().min(0).max(1000).default(5),
  /** Interval in milliseconds at which refusals that other processes have stored are read. */
  follow: z.int().min(100).default(10_000),
});

/** True once a second attempt was made for the call, at any target. */
const hasRetried = callKey<true>('second attempt without a refused member');

/**
 * Retries a request that the provider refused because of one field: when the refusal names the field, sends the request once more without
 * it and lists it in `x-sluice-loss`. Later calls of the model omit the field from the start.
 */
export default definePlugin({
  name: 'learned-refusals',
  stage: 'translate',
  before: ['parallel-choices', 'translation'],
  options,
  setup(chosen, { stores, log, reportRefusal, onClose }) {
    const memory = new Memory({ stores, log }, chosen);
    memory.follow();
    onClose(() => memory.stop());

    return function learnedRefusals(call, next) {
      const { target } = call;
      if (target === undefined || call.operation !== 'chat' || target.channel.learns === false)
        return next(call);
      const known = memory.of(target.channel.id, target.model).map(({ member }) => member);
      return next(known.length === 0 ? call : call.with({ refused: { members: known } })).catch(
        (error: unknown) => {
          const refused = refusedIn(error, call, target, known);
          const refusal = { call, target, known, refused: refused ?? [], error };
          if (refused === undefined || !mayRetry(refusal, memory)) throw error;
          return withoutNamed(refusal, next, memory, (member) => {
            logDropped(log, target, member);
            reportRefusal(target);
          });
        },
      );
    };
  },
});

/** A refused request, and what may be left out of it. */
interface Refusal {
  readonly call: Call;
  readonly target: Target;
  readonly known: readonly RefusedMember[];
  readonly refused: readonly RefusedMember[];
  /** The error of the first attempt. */
  readonly error: unknown;
}

/** Returns the members to try without; undefined where the error goes to the client. */
function refusedIn(
  error: unknown,
  call: Call,
  target: Target,
  known: readonly RefusedMember[],
): readonly RefusedMember[] | undefined {
  if (!(error instanceof GatewayError) || error.origin !== 'upstream') return undefined;
  if (call.wire.headers['x-sluice-strict'] === 'true') return undefined;
  const named = namedMembers(error, formatFor(call, target) ?? '');
  // The provider names what it was not sent.
  const absent = [...(target.traits.refusedMembers ?? []), ...known.map(({ path }) => path)];
  return named?.some((one) => isAmong(one, absent)) === true ? undefined : named;
}

function isAmong({ path }: RefusedMember, members: readonly (string | RefusedMember)[]): boolean {
  const plain = plainMember(path);
  const paths = members.map((one) => (typeof one === 'string' ? one : one.path));
  return paths.some((one) => `.${plainMember(one)}`.endsWith(`.${plain}`));
}

/** Returns true when the call may have another attempt. What another call has learned meanwhile counts no more for its model. */
function mayRetry({ call, target, refused }: Refusal, memory: Memory): boolean {
  if (call.hasEnded || call.get(hasRetried) === true) return false;
  return isLearned(target, refused, memory) || memory.mayLearn(target.channel.id, target.model);
}

function isLearned({ channel, model }: Target, refused: readonly RefusedMember[], memory: Memory): boolean {
  const known = memory.of(channel.id, model).map(({ member }) => member);
  return refused.every((one) => isAmong(one, known));
}

/** Sends the request once more without the members. Rejects with the error of the first attempt when that fails, or not all of them were sent. */
async function withoutNamed(
  refusal: Refusal,
  next: Next,
  memory: Memory,
  learned: (member: RefusedMember) => void,
): Promise<Observable<GatewayEvent>> {
  const { call, target, known, refused, error } = refusal;
  const { id } = target.channel;
  const giveBack = isLearned(target, refused, memory) ? () => {} : await memory.lock(id, target.model);
  if (giveBack === undefined) throw error;
  const suspected = memory.suspected(id, target.model).filter((one) => !isAmong(one, [...known, ...refused]));
  const tried = [...suspected, ...refused];
  let taken: readonly TakenMember[] = [];
  const found = (members: readonly TakenMember[]): void => {
    taken = members.filter(({ path }) => tried.some((one) => one.path === path));
    const wereSent = refused.every(({ path }) => taken.some((one) => one.path === path));
    // Other attempts and calls may have begun theirs meanwhile.
    if (!wereSent || !mayRetry(refusal, memory)) {
      giveBack();
      throw error;
    }
    call.set(hasRetried, true);
    if (!isLearned(target, refused, memory)) memory.count(id, target.model);
  };
  let reply: Observable<GatewayEvent>;
  try {
    reply = await next(call.with({ refused: { members: [...known, ...tried], found } }));
  } catch (second) {
    const others = refusedIn(second, call, target, [...known, ...tried]);
    if (others !== undefined) memory.suspect(id, target.model, others);
    throw error;
  }
  for (const { spelled, as, beside } of taken) {
    const member: RefusedMember = {
      path: spelled,
      ...(as === undefined ? {} : { as }),
      ...(beside === undefined ? {} : { beside }),
    };
    if (memory.learn(id, target.model, member)) learned(member);
  }
  return reply;
}

/** Logs which member is left out from now on, and the channel option that makes it permanent. */
function logDropped(log: Log, { channel, model }: Target, member: RefusedMember): void {
  log.warn(
    { channel: channel.id, model, member: member.path, option: traitOf(model, member) },
    'a provider refuses a request field: it is omitted for this model',
  );
}
