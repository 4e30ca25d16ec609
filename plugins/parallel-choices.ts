/** Serves `n` choices where the provider returns one per request. */
import { concat, defer, EMPTY, finalize, from, mergeMap, type Observable } from 'rxjs';
import { z } from 'zod';
import {
  chatOf,
  definePlugin,
  gathered,
  GatewayError,
  chatOutlineOf,
  wrongValue,
  estimateInput,
  wordBytes,
  type Call,
  type GatewayEvent,
  type Next,
} from 'sluice';
import { JoinedReplies, type Part } from './_joined-replies.ts';

const options = z.strictObject({
  /** Maximum `n` of a request if the provider returns one choice per request. A request for more gets 400. */
  most: z.int().min(1).max(128).default(16),
  /** Maximum number of requests of one call that run at the same time. */
  atOnce: z.int().min(1).max(128).default(8),
});

type Options = z.output<typeof options>;

/** Maximum bytes of text of all choices that are buffered for a client that does not stream. */
const mostHeld = 256 * 1024 * 1024;

/**
 * Serves several choices (`n`, `candidateCount`) where the provider returns one per request: sends one request per choice, and returns all
 * choices in one response. In a stream, choices interleave. Usage is the sum of all requests. If one request fails, the response fails and
 * the other requests are cancelled.
 */
export default definePlugin({
  name: 'parallel-choices',
  stage: 'translate',
  before: ['translation'],
  options,
  setup(chosen, { isSingleChoice }) {
    return function parallelChoices(call, next) {
      const { target } = call;
      if (target === undefined || call.operation !== 'chat' || call.edits.codec !== undefined)
        return next(call);
      const { choices = 1 } = chatOutlineOf(call).settings;
      if (choices <= 1 || !isSingleChoice(call, target)) return next(call);
      if (choices > chosen.most)
        throw wrongValue(call.codec.settingPath('choices'), `at most ${chosen.most} for this model`);
      const replies = new ParallelReplies(call, next, choices, chosen);
      return call.stream ? replies.streamed() : replies.whole();
    };
  },
});

/** A response that has begun, with the index of its choice. */
interface Begun {
  readonly index: number;
  readonly reply: Observable<GatewayEvent>;
}

/** Requests for the choices of one call, at one target. */
class ParallelReplies {
  readonly #next: Next;
  readonly #count: number;
  readonly #atOnce: number;
  /** Lifetime of all requests together: if one fails, all end. */
  readonly #life: ReturnType<Call['attempt']>;
  readonly #joined = new JoinedReplies();
  readonly #input: number;
  /** Choices of a stream that the client reads. */
  readonly #read = new Set<number>();
  #requested = 0;

  constructor(call: Call, next: Next, count: number, { atOnce }: Options) {
    this.#next = next;
    this.#count = count;
    this.#atOnce = Math.min(atOnce, count);
    this.#life = call.attempt();
    this.#input = estimateInput(chatOf(call));
  }

  /** Returns all choices once all are complete. Rejects if one fails. */
  async whole(): Promise<Observable<GatewayEvent>> {
    const replies: (readonly GatewayEvent[])[] = [];
    let held = 0;
    const work = async (): Promise<void> => {
      while (this.#requested < this.#count) {
        // Each request is one of this plugin's own, whose reply it reads itself.
        // oxlint-disable-next-line no-await-in-loop -- so many at once as there are workers
        const { index, reply } = await this.#requestNext();
        // oxlint-disable-next-line no-await-in-loop -- as above
        const events = await gathered(this.#life.call, reply);
        for (const event of events) held += wordBytes(event);
        if (held > mostHeld) throw tooLong();
        replies[index] = events;
      }
    };
    try {
      await Promise.all(Array.from({ length: this.#atOnce }, work));
    } finally {
      this.#life.end();
    }
    return from(replies.flatMap((events, index) => joinedEvents(this.#joined.add(index), events)));
  }

  /** Returns the events of all choices as they arrive. Resolves when the first choice begins. Rejects if a request fails before that. */
  async streamed(): Promise<Observable<GatewayEvent>> {
    const begun = Array.from({ length: this.#atOnce }, () => this.#requestNext());
    // Their failures are seen once somebody reads the stream, or not at all.
    for (const one of begun) one.catch(() => {});
    try {
      await Promise.race(begun);
      return from(begun).pipe(
        mergeMap((one) => this.#answers(one)),
        finalize(() => this.#end(begun)),
      );
    } catch (error) {
      this.#end(begun);
      throw error;
    }
  }

  async #requestNext(): Promise<Begun> {
    const index = this.#requested;
    this.#requested += 1;
    const reply = await this.#next(single(this.#life.call, index));
    return { index, reply };
  }

  /** Returns one choice, followed by those that are requested after it is complete. */
  #answers(begun: Promise<Begun>): Observable<GatewayEvent> {
    const more = defer(() => (this.#requested < this.#count ? this.#answers(this.#requestNext()) : EMPTY));
    return concat(from(begun).pipe(mergeMap((one) => this.#answer(one))), more);
  }

  #answer({ index, reply }: Begun): Observable<GatewayEvent> {
    this.#read.add(index);
    const part = this.#joined.add(index, this.#input);
    const own = reply.pipe(
      mergeMap((event) => {
        const events = part.event(event) ?? [];
        // If the client disconnects before a provider reports its usage, the input of all requests is charged.
        return event.type === 'head' ? [events, this.#used()].flat() : [events].flat();
      }),
    );
    return concat(
      own,
      defer(() => part.end()),
    );
  }

  #used(): readonly GatewayEvent[] {
    const { usage } = this.#joined;
    return usage === undefined ? [] : [{ type: 'usage', usage }];
  }

  /**
   * Ends all requests. Unsubscribes from a response that begins at the same moment, because an unread response keeps the call's gate
   * closed.
   */
  #end(begun: readonly Promise<Begun>[]): void {
    this.#life.end();
    for (const one of begun)
      one.then(
        ({ index, reply }) =>
          this.#read.has(index) ? undefined : gathered(this.#life.call, reply).catch(() => {}),
        () => {},
      );
  }
}

/** Returns the request for one choice. Each has its own seed, because providers return the same choice for the same seed. */
function single(call: Call, index: number): Call {
  const { seed } = chatOutlineOf(call).settings;
  return call.with({
    decoded: true,
    settings: { choices: 1, ...(seed === undefined ? {} : { seed: seed + index }) },
  });
}

function joinedEvents(part: Part, events: readonly GatewayEvent[]): readonly GatewayEvent[] {
  return [...events.flatMap((event) => part.event(event) ?? []), ...part.end()];
}

function tooLong(): GatewayError {
  return new GatewayError('upstream_error', 'The responses of the upstream are too long to be buffered.', {
    origin: 'upstream',
  });
}
