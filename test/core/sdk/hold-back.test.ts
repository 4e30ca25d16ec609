import * as fc from 'fast-check';
import { Observable, Subject, type Subscriber } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { holdBack, type Keeper, type KeepVerdict } from '../../../core/sdk/hold-back.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { testCall } from '../../support/call.ts';
import { tries } from '../../support/tries.ts';

const text = (words: string): GatewayEvent => ({ type: 'text-delta', block: 0, choice: 0, text: words });
const finish: GatewayEvent = { type: 'finish', choice: 0, reason: 'stop' };
const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
};
const bytes = (json: string): GatewayEvent => ({ type: 'bytes', bytes: Buffer.from(json) });

/** Keeps at every finish and at the end, each time until the test lets it go on. */
class TestKeeper implements Keeper {
  readonly failures: unknown[] = [];
  keeps = 0;
  /** True while there is anything to keep. */
  has = true;
  #go: (() => void)[] = [];

  see({ type }: GatewayEvent): KeepVerdict {
    return type === 'finish' ? 'keep' : type === 'bytes' ? 'late' : 'pass';
  }

  keep(failure?: { readonly error: unknown }): Promise<void> | undefined {
    if (failure !== undefined) this.failures.push(failure.error);
    if (!this.has) return undefined;
    this.keeps += 1;
    return new Promise((resolve) => this.#go.push(resolve));
  }

  async settle(): Promise<void> {
    for (const go of this.#go.splice(0)) go();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function stage(source: Observable<GatewayEvent> & { readonly observed?: boolean }) {
  const { call } = testCall();
  const keeper = new TestKeeper();
  const seen: unknown[] = [];
  const subscription = source.pipe(holdBack(call, keeper)).subscribe({
    next: (event) => void seen.push('text' in event ? event.text : event.type),
    error: (error: Error) => void seen.push(error.message),
    complete: () => void seen.push('complete'),
  });
  return { call, keeper, seen, subscription };
}

describe('what must be kept before the client can see the end', () => {
  test('holds back the end and all behind it, and the provider, and nothing before', async () => {
    const source = new Subject<GatewayEvent>();
    const { call, keeper, seen } = stage(source);
    source.next(text('a'));
    source.next(finish);
    source.next(text('b'));
    keeper.has = false;
    source.complete();
    expect(seen).toEqual(['a']);
    expect(call.gate.closed).toBe(true);
    await keeper.settle();
    expect(seen).toEqual(['a', 'finish', 'b', 'complete']);
    expect(call.gate.closed).toBe(false);
  });

  test('is waited for again when more comes to be kept meanwhile', async () => {
    const source = new Subject<GatewayEvent>();
    const { call, keeper, seen } = stage(source);
    source.next(finish);
    source.next(text('b'));
    source.next(finish);
    source.complete();
    await keeper.settle();
    expect(seen).toEqual(['finish', 'b']);
    await keeper.settle();
    expect(seen).toEqual(['finish', 'b', 'finish']);
    await keeper.settle();
    expect(seen).toEqual(['finish', 'b', 'finish', 'complete']);
    expect([keeper.keeps, call.gate.closed]).toEqual([3, false]);
  });

  test('comes before the last of the bytes where only the end tells what there is', async () => {
    const source = new Subject<GatewayEvent>();
    const { call, keeper, seen } = stage(source);
    source.next(bytes('{"a":'));
    source.next(bytes('1}'));
    source.next(usage);
    expect(seen).toEqual(['bytes']);
    source.complete();
    expect([keeper.keeps, seen]).toEqual([1, ['bytes']]);
    await keeper.settle();
    expect(seen).toEqual(['bytes', 'bytes', 'usage', 'complete']);
    expect(call.gate.closed).toBe(false);
  });

  test('does not hide that the reply broke, and what was held of it does not go out as if it were sound', async () => {
    const source = new Subject<GatewayEvent>();
    const { keeper, seen } = stage(source);
    source.next(bytes('{"a":1}'));
    source.error(new Error('cut'));
    expect(seen).toEqual([]);
    await keeper.settle();
    expect(seen).toEqual(['cut']);
    expect(keeper.failures).toEqual([new Error('cut')]);
  });

  test('costs no wait where there is nothing to keep', () => {
    const source = new Subject<GatewayEvent>();
    const { call, keeper, seen } = stage(source);
    keeper.has = false;
    source.next(text('a'));
    source.next(finish);
    source.complete();
    expect(seen).toEqual(['a', 'finish', 'complete']);
    expect(call.gate.closed).toBe(false);
  });

  test('keeps the order of what comes while the held events go out', async () => {
    let feed: Subscriber<GatewayEvent> | undefined;
    const { call } = testCall();
    const keeper = new TestKeeper();
    const seen: string[] = [];
    new Observable<GatewayEvent>((subscriber) => {
      feed = subscriber;
    })
      .pipe(holdBack(call, keeper))
      .subscribe((event) => {
        seen.push('text' in event ? event.text : event.type);
        if (event.type === 'finish') feed?.next(text('late'));
      });
    feed?.next(finish);
    feed?.next(text('early'));
    await keeper.settle();
    expect(seen).toEqual(['finish', 'early', 'late']);
  });

  test('fails the reply once, wherever the keeper throws, and lets go of the provider', async () => {
    const broken = new Error('no room');
    const failing = {
      'while the reply goes by': (keeper: TestKeeper) => {
        keeper.see = () => {
          throw broken;
        };
      },
      'in what came while something was kept': (keeper: TestKeeper) => {
        const see = keeper.see.bind(keeper);
        keeper.see = (event) => {
          if (event.type === 'text-delta') throw broken;
          return see(event);
        };
      },
      'where it begins to keep': (keeper: TestKeeper) => {
        keeper.keep = () => {
          throw broken;
        };
      },
      'later, where it keeps': (keeper: TestKeeper) => {
        keeper.keep = () => Promise.reject(broken);
      },
    };
    for (const [where, breaks] of Object.entries(failing)) {
      const source = new Subject<GatewayEvent>();
      const { call, keeper, seen } = stage(source);
      breaks(keeper);
      source.next(finish);
      source.next(text('b'));
      source.next(text('c'));
      await keeper.settle();
      source.complete();
      await keeper.settle();
      expect([where, seen.filter((one) => one !== 'finish')]).toEqual([where, ['no room']]);
      expect([where, source.observed, call.gate.closed]).toEqual([where, false, false]);
    }
  });

  test('tells what broke the reply, not what broke the keeper after it', async () => {
    const source = new Subject<GatewayEvent>();
    const { keeper, seen } = stage(source);
    keeper.keep = () => Promise.reject(new Error('no room'));
    source.error(new Error('cut'));
    await keeper.settle();
    expect(seen).toEqual(['cut']);
  });

  test('is no reason to go on when the client has left', async () => {
    const source = new Subject<GatewayEvent>();
    const { call, keeper, seen, subscription } = stage(source);
    source.next(finish);
    source.next(finish);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
    await keeper.settle();
    expect([seen, keeper.keeps]).toEqual([[], 1]);
    expect(call.gate.closed).toBe(false);
  });

  test('changes nothing of a reply, whatever it is made of', async () => {
    const event = fc.constantFrom(text('a'), finish, usage, bytes('{}'));
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
        const source = new Subject<GatewayEvent>();
        const { call, keeper, seen } = stage(source);
        for (const one of events) source.next(one);
        source.complete();
        for (let round = 0; round <= events.length + 1; round += 1) await keeper.settle();
        expect(seen).toEqual([...events.map((one) => ('text' in one ? one.text : one.type)), 'complete']);
        expect(call.gate.closed).toBe(false);
      }),
      { numRuns: tries(200) },
    );
  });
});
