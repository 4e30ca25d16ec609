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

/** The figures that a client can ask for, in the order in which they are sent. */
const figures = ['model', 'channel', 'attempts', 'timing', 'cost', 'usage'] as const;
type Figure = (typeof figures)[number];

/** Figures that are known at the end of a response alone. */
const atEnd: ReadonlySet<Figure> = new Set<Figure>(['cost', 'usage']);

const callers = z.union([
  z.literal('all'),
  z.array(z.string().regex(/^key_/, 'must be the id of a key: key_…')),
]);

const options = z.strictObject({
  /** Figures that every response tells, also when nobody asks. Default: none. */
  always: z.array(z.enum(figures)).default([]),
  /** Who may see which channel answered: `'all'`, or the ids of keys. */
  channelFor: callers.default('all'),
  /** Who may see cost and usage: `'all'`, or the ids of keys. */
  costFor: callers.default('all'),
  /**
   * Whether streams of server-sent events also end with cost and usage as comments, for clients that ask for them. Formats whose clients stop
   * at comments (`generateContent`) have none.
   */
  comments: z.boolean().default(false),
  /** Maximum bytes of a whole response that are held back until its end, so that its head can tell the cost. 0: none are. */
  holdBytes: z.int().min(0).max(16_777_216).default(262_144),
});

/**
 * Callers read in the headers of a response which model and channel answered, after how many attempts, how long the gateway and the provider
 * took, and what it cost: those that they ask for with `x-sluice-headers`. Streams tell their cost in trailers.
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
    /** The caller is known when the head is written, not before. */
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

/** Returns the figures of a request's header, `all` for all of them, and those that every response tells. Other words are ignored. */
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
  /** Time for which the request waited for its turn, before any plugin ran. */
  readonly #queueMs: number;

  constructor(call: Call) {
    this.#call = call;
    this.#queueMs = performance.now() - call.startedAt;
  }

  /**
   * `upstream` lasts from the first request to a provider until the first event of its response, or until the whole of it, and includes
   * attempts that failed; `queue` is the wait for a turn; `gateway` is the rest.
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

/** Maximum number of pieces that are held, because each of them takes memory beside its bytes. */
const maxPieces = 1_000;

/** Holds the bytes of a whole response back until its end, when its usage is known. More than `limit` of them go on at once. */
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
