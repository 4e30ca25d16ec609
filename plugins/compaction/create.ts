/**
 * Handles requests for a response: compacts the context before, if the client requests compaction and the context is long enough. A provider
 * with native compaction does it itself.
 */
import { from, type Observable } from 'rxjs';
import {
  countTokens,
  GatewayError,
  startWithEvents,
  chatOf,
  chatFormats,
  missingValue,
  type GatewayEvent,
  type JsonObject,
  type JsonValue,
} from 'sluice';
import { officialForm, readContextManagement, type ContextManagement } from './context-management.ts';
import { exceeds, openCalls, split, type Item, type Split } from './items.ts';
import { compactionAlone, withCompaction } from './reply.ts';
import { asContext, isSummary } from './seals.ts';
import {
  compacted,
  compactsItself,
  format,
  keptShare,
  refersBack,
  unseen,
  type Order,
  type Work,
} from './work.ts';

/** Result of a handler. */
export type Reply = Promise<Observable<GatewayEvent>>;

/** Handles a request for a response. */
export async function create(work: Work): Reply {
  const { call, target } = work;
  const management = readContextManagement(call.body.context_management);
  const native = compactsItself(target);
  const lost = [...management.lost, ...(native ? onlyHere(management) : onlyWhole(management, call.body))];
  return reporting(work, native, lost, () =>
    native ? byProvider(work, management) : byGateway(work, management),
  );
}

/** Adds events for the unsupported parts of `context_management` to a response. Throws 400 for them where the client is strict. */
export async function reporting(
  { call, target }: Work,
  native: boolean,
  lost: readonly string[],
  make: () => Reply,
): Reply {
  const [first] = lost;
  if (first === undefined) return make();
  if (call.wire.headers['x-sluice-strict'] === 'true') {
    throw new GatewayError(
      'unsupported_parameter',
      `The channel for this model cannot carry: ${lost.join(', ')}.`,
      { param: first },
    );
  }
  const to = native ? format : (chatFormats(target)[0] ?? '');
  const losses = lost.map((path): GatewayEvent => ({
    type: 'loss',
    loss: { path, kind: 'setting', from: format, to },
  }));
  return startWithEvents(losses, await make());
}

/** Returns the paths that the gateway cannot honour where earlier turns are stored elsewhere, because it sees only the end of the context. */
function onlyWhole({ compaction }: ContextManagement, body: JsonObject): readonly string[] {
  return compaction !== undefined && refersBack(body) ? ['context_management'] : [];
}

/** Returns the paths that native compaction does not support: own instructions and a pause. */
export function onlyHere({ compaction }: ContextManagement): readonly string[] {
  return compaction?.instructions !== undefined || compaction?.pause === true
    ? ['context_management.edits']
    : [];
}

function byProvider({ call, next, items, changed }: Work, { compaction }: ContextManagement): Reply {
  const { context_management: wanted, ...body } = call.body;
  const context = withoutOldTriggers(items);
  const asIs = wanted === undefined || wanted === null || isOfficial(wanted);
  if (asIs && !changed && context === items) return next(call);
  const management = asIs ? wanted : compaction === undefined ? undefined : officialForm(compaction);
  return next(
    call.with({
      body: {
        ...body,
        ...(changed || context !== items ? { input: context } : {}),
        ...(management === undefined ? {} : { context_management: management }),
      },
    }),
  );
}

function isOfficial(value: JsonValue): boolean {
  const entries = Array.isArray(value) ? (value as readonly JsonObject[]) : undefined;
  return entries?.every(({ type }) => type === 'compaction') === true;
}

/** Removes triggers that are not the last item: a trigger that was honoured stays in the history that the client sends again. */
function withoutOldTriggers(items: readonly Item[]): readonly Item[] {
  const last = items.length - 1;
  return items.some(({ type }, index) => type === 'compaction_trigger' && index < last)
    ? items.filter(({ type }, index) => type !== 'compaction_trigger' || index === last)
    : items;
}

async function byGateway(work: Work, { compaction }: ContextManagement): Reply {
  const { call, next, items, changed } = work;
  const { context_management: wanted, ...rest } = call.body;
  const context = items.filter(({ type }) => type !== 'compaction_trigger');
  const triggered = items.at(-1)?.type === 'compaction_trigger';
  const same = !changed && context.length === items.length;
  if (same && wanted === undefined) return next(call);
  const body: JsonObject = same ? rest : { ...rest, input: context };
  const goOn = (): Reply => next(call.with({ body }));
  if (refersBack(rest)) {
    if (triggered) throw unseen();
    return goOn();
  }
  if (triggered) {
    // The client asks for the context's compaction at this point and for nothing else: there is no question behind it that an answer
    // could belong to, so that the reply consists of the compaction item.
    if (context.length === 0) throw missingValue('input');
    return alone(work, { head: context, kept: openCalls(context), covers: work.written - 1 });
  }
  if (compaction === undefined) return goOn();
  const threshold = compaction.threshold ?? work.threshold;
  if (!(await exceeds(threshold, body, () => countTokens(chatOf(call.with({ body })))))) return goOn();
  const parts = worthwhile(context, threshold);
  if (parts === undefined) return goOn();
  const order: Order = { ...parts, covers: work.written, prompt: compaction.instructions };
  return compaction.pause === true ? alone(work, order) : over(work, body, order);
}

/** Returns the two parts of a context; undefined where the first would be empty or only an earlier summary. */
export function worthwhile(items: readonly Item[], threshold: number): Split | undefined {
  const parts = split(items, threshold * keptShare);
  return parts === undefined || (parts.head.length === 1 && isSummary(parts.head[0])) ? undefined : parts;
}

async function alone(work: Work, order: Order): Reply {
  const { item, usage, attempt } = await compacted(work, order);
  const reply = compactionAlone(work.call, item, usage);
  return from(attempt === undefined ? reply : [attempt, ...reply]);
}

/** Compacts the context, and sends the request with the compacted context. */
export async function over(work: Work, body: JsonObject, order: Order): Reply {
  const { call, next, codec } = work;
  const { item, summary, usage } = await compacted(work, order);
  const input = asContext({ summary, kept: order.kept });
  const answering = call.with({ body: { ...body, input }, decoded: true });
  const answer = await next(
    call.operation === 'chat' ? answering : answering.with({ codec, stream: call.stream }),
  );
  return withCompaction(answer, item, usage);
}
