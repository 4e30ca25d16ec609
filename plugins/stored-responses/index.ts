/** Stores responses and conversations, for Responses clients of providers that do not store them. */
import { of, type Observable } from 'rxjs';
import { z } from 'zod';
import { holdBack, isObject, startWithEvents, wrongValue, type GatewayEvent, type JsonObject } from 'sluice';
import { writeSse } from 'sluice/channel-kit';
import {
  definePlugin,
  connection,
  expandedBody,
  openResponseStore,
  type Call,
  type InternalTools,
  type Next,
  type Target,
} from 'sluice/internal';
import { BackgroundRuns } from './background.ts';
import { forgetOnConnection } from './connection-turns.ts';
import { addEndpoints } from './endpoints.ts';
import { forward, inClientsPlaces, isNative, only } from './forward.ts';
import { retentionOf, TurnKeeper, type Keeping } from './keep.ts';
import { begunResponse } from './record.ts';
import { resolve, type Resolved } from './resolve.ts';

const secondsOfDay = 86_400;

const options = z.strictObject({
  /** Days for which responses are stored. */
  retention: z.number().positive().max(3650).default(30),
  /** Maximum number of earlier turns that a request may refer to by the id of the last. */
  maxTurns: z.int().min(1).max(1000).default(1000),
  /**
   * Serves the Responses API over channels of other formats: over all, none, or those with these ids. A call for a model that has only
   * other channels gets 503.
   */
  emulate: z.union([z.boolean(), z.array(z.string().min(1))]).default(true),
  /** Maximum number of background responses that run at the same time in one process. */
  backgroundRuns: z.int().min(0).default(1000),
});

/** Operations whose requests may refer to earlier turns. */
const referring: ReadonlySet<string> = new Set(['chat', 'count-tokens', 'compact']);

/**
 * Stores responses, conversations and items, so that clients of the Responses API can refer to them by id, on any channel and after a
 * restart. Runs responses in the background if a client requests it.
 */
export default definePlugin({
  name: 'stored-responses',
  stage: 'admit',
  // Writes out the whole conversation before these plugins, because the upper bound of the cost depends on it.
  before: ['quota', 'provider-objects'],
  options,
  setup(chosen, tools: InternalTools) {
    const { catalog, log } = tools;
    const store = openResponseStore(tools.stores, (error) =>
      log.error({ error }, 'a stored response is damaged'),
    );
    const keeping: Keeping = { store, retention: Math.floor(chosen.retention * secondsOfDay), log };
    const runs = new BackgroundRuns({ ...keeping, most: chosen.backgroundRuns, detached: tools.detached });
    tools.onClose(() => runs.close());
    addEndpoints(tools, store, {}, { cancel: (owner, id) => runs.cancel(owner, id) });

    const answered = async (call: Call, next: Next): Promise<Observable<GatewayEvent>> => {
      const resolved = await resolve(call, store, chosen.maxTurns);
      if (resolved.expanded !== undefined) checkExpanded(call, resolved);
      if (call.operation !== 'chat') return forward(call, { ...resolved, channel: undefined }, catalog, next);
      if (call.body.background === true) {
        const begun = await runs.begin(call, resolved, (own) =>
          forward(own, resolved, catalog, next, { decoded: true }),
        );
        return withDropped(call, begun);
      }
      const reply =
        call.body.generate === false
          ? prepared(call)
          : withDropped(call, await forward(call, resolved, catalog, next));
      const kept = retentionOf(call) !== 'nowhere' || resolved.conversation !== undefined;
      return kept ? reply.pipe(holdBack(call, new TurnKeeper(call, resolved, keeping))) : reply;
    };

    const { emulate } = chosen;
    const isSuitable = (target: Target): boolean =>
      isNative(target) || (Array.isArray(emulate) && emulate.includes(target.channel.id));

    return function storedResponses(call: Call, next) {
      if (call.codec.format !== 'responses' || !referring.has(call.operation)) return next(call);
      return answered(call, chosen.emulate === true ? next : only(isSuitable, catalog, next)).catch(
        (error) => {
          forgetOnConnection(call);
          throw error;
        },
      );
    };
  },
});

/** Reports options of background responses that have no effect, because every response begins at once. */
function withDropped(
  { body, codec: { format } }: Call,
  reply: Observable<GatewayEvent>,
): Observable<GatewayEvent> {
  const wanted = body.background_options;
  if (!isObject(wanted)) return reply;
  const dropped = Object.keys(wanted).filter((name) => wanted[name] !== 'soonest');
  if (dropped.length === 0) return reply;
  const losses = dropped.map((name): GatewayEvent => {
    return {
      type: 'loss',
      loss: { path: `background_options.${name}`, kind: 'setting', from: format, to: format },
    };
  });
  return startWithEvents(losses, reply);
}

/** Checks the whole conversation by the rules of a request: each tool output needs its tool call. */
function checkExpanded(call: Call, resolved: Resolved): void {
  const { expanded } = resolved;
  if (expanded === undefined) return;
  try {
    call.codec.validate(expanded, call.wire.params);
  } catch (error) {
    throw inClientsPlaces(error, resolved);
  }
  call.set(expandedBody, expanded);
}

/** Returns true for `generate: false`, which only stores the turn. Refused over plain HTTP, where it has no effect. */
function prepared(call: Call): Observable<GatewayEvent> {
  if (call.get(connection) === undefined)
    throw wrongValue('generate', 'true outside of a WebSocket connection');
  const begun = begunResponse(call);
  const done = { ...begun, status: 'completed', completed_at: call.created, usage: nothingUsed };
  const frames: readonly JsonObject[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    { type: 'response.completed', response: done },
  ];
  const text = frames.map((frame, index) =>
    writeSse({ event: String(frame.type), json: { ...frame, sequence_number: index } }),
  );
  return of<GatewayEvent>({ type: 'frames', format: call.codec.format, bytes: Buffer.from(text.join('')) });
}

const nothingUsed: JsonObject = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};
