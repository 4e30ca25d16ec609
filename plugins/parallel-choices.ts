/** Serves `n` answers where the provider makes one for each request. */
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
  /** Most answers of one request (`n`) where the provider makes one for each request: as many requests are sent. Further answers are refused. */
  most: z.int().min(1).max(128).default(16),
  /** Requests that are under way at once. */
  atOnce: z.int().min(1).max(128).default(8),
});

type Options = z.output<typeof options>;

/** Most bytes of words of all answers that are held for a client without a stream. */
const mostHeld = 256 * 1024 * 1024;

/**
 * Callers may ask for several answers (`n`, `candidateCount`) where the provider makes one for each request: the request is sent once for
 * each answer, and all answers come in one reply. In a stream they interleave. Usage is that of all requests. Where one of them fails the
 * reply fails and the others are given up.
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

/** A reply that has begun, and which of all it is. */
interface Begun {
  readonly index: number;
  readonly reply: Observable<GatewayEvent>;
}

/** The requests for the answers of one call, at one target. */
class ParallelReplies {
  readonly #next: Next;
  readonly #count: number;
  readonly #atOnce: number;
  /** The life of all requests together: where one fails, all end. */
  readonly #life: ReturnType<Call['attempt']>;
  readonly #joined = new JoinedReplies();
  readonly #input: number;
  /** The answers of a stream that somebody reads. */
  readonly #read = new Set<number>();
  #requested = 0;

  constructor(call: Call, next: Next, count: number, { atOnce }: Options) {
    this.#next = next;
    this.#count = count;
    this.#atOnce = Math.min(atOnce, count);
    this.#life = call.attempt();
    this.#input = estimateInput(chatOf(call));
  }

  /** Returns all choices once all are complete. Rejects where one fails. */
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

  /** The answers as they come. Resolves when the first of them begins; rejects where a request fails before that. */
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
        // A client that leaves before a provider tells its usage pays for what all requests have read.
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

  /** Ends all requests. A reply that begins in the same moment is let go of, because one that nobody reads holds the call's gate. */
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

/** The request for one of the answers. Providers that keep to a seed would give the same answer every time: each request has its own. */
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
  return new GatewayError('upstream_error', 'The answers of the upstream are too long to be held.', {
    origin: 'upstream',
  });
}
