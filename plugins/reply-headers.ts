import { concatWith, defer, from, mergeMap, type Observable } from 'rxjs';
import { z } from 'zod';
import {
  addReplyHeaders,
  addReplyTrailers,
  caller,
  definePlugin,
  type Call,
  type GatewayEvent,
  type Usage,
} from 'sluice';

/** Figures that a client can request, in the order in which they are sent. */
const figures = ['model', 'channel', 'attempts', 'timing', 'cost', 'usage'] as const;
type Figure = (typeof figures)[number];

/** Figures that are known only at the end of a response. */
const atEnd: ReadonlySet<Figure> = new Set<Figure>(['cost', 'usage']);

const callers = z.union([
  z.literal('all'),
  z.array(z.string().regex(/^key_/, 'must be the id of a key: key_…')),
]);

const options = z.strictObject({
  /** Figures that every response has, also if the client does not request them. Default: none. */
  always: z.array(z.enum(figures)).default([]),
  /** Keys that may see which channel responded: `'all'`, or a list of key ids. */
  channelFor: callers.default('all'),
  /** Keys that may see cost and usage: `'all'`, or a list of key ids. */
  costFor: callers.default('all'),
  /**
   * Ends server-sent event streams with cost and usage as comments, for clients that request them. Not in `generateContent`, because its
   * clients stop at comments.
   */
  comments: z.boolean().default(false),
  /**
   * Maximum bytes of a non-streamed response that are buffered until its end, so that its headers can include the cost. 0: no buffering.
   */
  holdBytes: z.int().min(0).max(16_777_216).default(262_144),
});

/**
 * Adds figures about a call to its response headers, as far as the client requests them with `x-sluice-headers`: model, channel, number of
 * attempts, time in the gateway and at the provider, cost and usage. Streams have cost and usage in trailers.
 */
export default definePlugin({
  name: 'reply-headers',
  stage: 'observe',
  reads: 'usage',
  whenListed: true,
  options,
  setup({ always, channelFor, costFor, comments, holdBytes }) {
    const isAllowed = (call: Call, allowed: 'all' | readonly string[]): boolean =>
      allowed === 'all' || allowed.includes(call.get(caller)?.id ?? '');
    /** Read when the headers are written, because the caller is not known before. */
    const isVisible = (call: Call, figure: Figure): boolean =>
      figure === 'channel' ? isAllowed(call, channelFor) : !atEnd.has(figure) || isAllowed(call, costFor);

    return async function replyHeaders(call, next) {
      const wanted = wantedFigures(call.wire.headers['x-sluice-headers'], always);
      if (wanted.length === 0) return next(call);
      const clock = new Clock(call);
      const values = (some: readonly Figure[]): Record<string, string> =>
        Object.fromEntries(
          some.filter((figure) => isVisible(call, figure)).flatMap((figure) => headerOf(figure, call, clock)),
        );
      const late = wanted.filter((figure) => atEnd.has(figure));
      // A stream may tell a part of its usage at its beginning, which is not what the call costs.
      addReplyHeaders(call, () => values(wanted.filter((figure) => !call.stream || !late.includes(figure))));
      if (late.length === 0) return next(call);
      const names = late.map((figure) => `x-sluice-${figure}`);
      addReplyTrailers(call, { names, values: () => values(late), comments });
      const reply = await next(call);
      return call.stream || holdBytes === 0 ? reply : heldToEnd(reply, holdBytes);
    };
  },
});

/** Returns the figures that the request header names (`all`: all figures), and those of every response. Ignores unknown names. */
function wantedFigures(header: string | string[] | undefined, always: readonly Figure[]): readonly Figure[] {
  if (header === undefined) return always;
  const words = new Set(
    String(header)
      .slice(0, 200)
      .toLowerCase()
      .split(/[\s,]+/),
  );
  return figures.filter((figure) => words.has(figure) || words.has('all') || always.includes(figure));
}

function headerOf(figure: Figure, call: Call, clock: Clock): readonly (readonly [string, string])[] {
  const { model, attempts, cost, usage } = call.progress;
  const answered = attempts.find(({ failure }) => failure === undefined);
  switch (figure) {
    case 'model':
      return model === '' ? [] : [['x-sluice-model', model]];
    case 'channel':
      return answered === undefined ? [] : [['x-sluice-channel', answered.channel]];
    case 'attempts':
      return [['x-sluice-attempts', String(attempts.length)]];
    case 'timing':
      return [['server-timing', clock.timing()]];
    case 'cost':
      return usage === undefined || cost === undefined
        ? []
        : [['x-sluice-cost', (cost.microDollars / 1e6).toFixed(6)]];
    case 'usage':
      return usage === undefined ? [] : [['x-sluice-usage', usageText(usage)]];
  }
}

/** Returns the token counts as a dictionary of structured fields (RFC 9651). */
function usageText({ input, output, cacheRead, cacheWrite, reasoning }: Usage): string {
  return `input=${input}, output=${output}, cache-read=${cacheRead}, cache-write=${cacheWrite}, reasoning=${reasoning}`;
}

/** Durations of one call for `server-timing`, in milliseconds. */
class Clock {
  readonly #call: Call;
  /** Time for which the request waited for capacity, before any plugin ran. */
  readonly #queueMs: number;

  constructor(call: Call) {
    this.#call = call;
    this.#queueMs = performance.now() - call.startedAt;
  }

  /**
   * `upstream` lasts from the first request to a provider until the first event of its response, or until the whole of it, and includes
   * attempts that failed; `queue` is the wait for capacity; `gateway` is the rest.
   */
  timing(): string {
    const { queuedMs, firstMs, totalMs } = this.#call.progress.times;
    const upstreamMs = queuedMs === undefined ? undefined : Math.max(0, (firstMs ?? totalMs) - queuedMs);
    const gatewayMs = Math.max(0, totalMs - (upstreamMs ?? 0) - this.#queueMs);
    const upstream = upstreamMs === undefined ? [] : [entry('upstream', upstreamMs)];
    return [entry('gateway', gatewayMs), ...upstream, entry('queue', this.#queueMs)].join(', ');
  }
}

function entry(name: string, milliseconds: number): string {
  return `${name};dur=${milliseconds.toFixed(1)}`;
}

/** Maximum number of chunks that are buffered. Limited because each chunk takes memory beside its bytes. */
const maxPieces = 1_000;

/** Buffers a non-streamed response until its end, when its usage is known. Passes the bytes on at once when there are more than `limit`. */
function heldToEnd(reply: Observable<GatewayEvent>, limit: number): Observable<GatewayEvent> {
  let held: GatewayEvent[] | undefined = [];
  let length = 0;
  const release = (): readonly GatewayEvent[] => {
    const released = held ?? [];
    held = undefined;
    return released;
  };
  const take = (event: GatewayEvent): readonly GatewayEvent[] => {
    if (held === undefined || event.type !== 'bytes') return [event];
    held.push(event);
    length += event.bytes.length;
    return length > limit || held.length > maxPieces ? release() : [];
  };
  return reply.pipe(mergeMap(take), concatWith(defer(() => from(release()))));
}
