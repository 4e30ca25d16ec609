import { Observable, of, Subject, throwError, type Observer } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import type { Call } from '../../../core/sdk/call.ts';
import { Gate } from '../../../core/sdk/gate.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { Usage } from '../../../core/model/usage.ts';
import { eachInOrder, observe, onUsage, peekFirst, startWithEvents } from '../../../core/sdk/operators.ts';
import { eventually } from '../../support/eventually.ts';

const text = (word: string): GatewayEvent => ({ type: 'text-delta', block: 0, choice: 0, text: word });
const words = (events: readonly GatewayEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []));

function collect(source: Observable<GatewayEvent>): {
  events: GatewayEvent[];
  ended: string[];
  stop: () => void;
} {
  const events: GatewayEvent[] = [];
  const ended: string[] = [];
  const subscription = source.subscribe({
    next: (event) => events.push(event),
    error: (error: unknown) => ended.push(`error ${error instanceof Error ? error.message : String(error)}`),
    complete: () => ended.push('complete'),
  });
  return { events, ended, stop: () => subscription.unsubscribe() };
}

describe('observe', () => {
  test('tells once how the stream ended: complete, error or left', () => {
    const end = vi.fn<(how: string, error?: unknown) => void>();
    collect(of(text('a')).pipe(observe({ end })));
    expect(end.mock.calls).toEqual([['complete', undefined]]);
    end.mockClear();
    const failure = new Error('broken');
    collect(throwError(() => failure).pipe(observe({ end })));
    expect(end.mock.calls).toEqual([['error', failure]]);
    end.mockClear();
    const source = new Subject<GatewayEvent>();
    const { stop } = collect(source.pipe(observe({ end })));
    source.next(text('a'));
    stop();
    stop();
    expect(end.mock.calls).toEqual([['left', undefined]]);
    expect(source.observed).toBe(false);
  });

  test('an observer that throws harms nobody', () => {
    const failed = vi.fn<(error: unknown) => void>();
    const fail = (): never => {
      throw new Error('observer');
    };
    const { events, ended } = collect(
      of(text('a'), text('b')).pipe(observe({ event: fail, end: fail, failed })),
    );
    expect(words(events)).toEqual(['a', 'b']);
    expect(ended).toEqual(['complete']);
    expect(failed).toHaveBeenCalledTimes(3);
    expect(collect(of(text('a')).pipe(observe({ event: fail, end: fail }))).ended).toEqual(['complete']);
  });
});

test('an observer that throws and says nowhere what to do with it is a warning of the process, once a stream', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const broken = (): never => {
    throw new Error('observer');
  };
  const { ended } = collect(of(text('a'), text('b')).pipe(observe({ event: broken }), onUsage(broken)));
  expect(ended).toEqual(['complete']);
  expect(warned.mock.calls).toEqual([[new Error('observer')], [new Error('observer')]]);
  warned.mockRestore();
});

test('onUsage tells the last usage once, also when the client left early', () => {
  const usage = (output: number): GatewayEvent => ({ type: 'usage', usage: { output } as Usage });
  const reported: (Usage | undefined)[] = [];
  const source = new Subject<GatewayEvent>();
  const { stop } = collect(source.pipe(onUsage((last) => reported.push(last))));
  source.next(usage(1));
  source.next(usage(2));
  stop();
  expect(reported).toEqual([{ output: 2 }]);
  collect(of(text('a')).pipe(onUsage((last) => reported.push(last))));
  expect(reported).toEqual([{ output: 2 }, undefined]);
});

describe('eachInOrder', () => {
  const call = (): Call => ({ gate: new Gate() }) as unknown as Call;

  test('keeps the order, drops and multiplies, and holds the provider while it works', async () => {
    const context = call();
    const closed: boolean[] = [];
    const source = new Subject<GatewayEvent>();
    const { events, ended } = collect(
      source.pipe(
        eachInOrder(context, async (event) => {
          closed.push(context.gate.closed);
          const word = words([event])[0] ?? '';
          await new Promise((resolve) => setTimeout(resolve, word === 'slow' ? 20 : 1));
          return word === 'drop' ? [] : word === 'twice' ? [event, event] : [event];
        }),
      ),
    );
    for (const word of ['slow', 'drop', 'twice', 'last']) source.next(text(word));
    source.complete();
    expect(ended).toEqual([]);
    await eventually(() => expect(ended).toEqual(['complete']));
    expect(words(events)).toEqual(['slow', 'twice', 'twice', 'last']);
    expect(closed).toEqual([true, true, true, true]);
    expect(context.gate.closed).toBe(false);
  });

  test('an error of the source comes behind what was still being worked on', async () => {
    const source = new Subject<GatewayEvent>();
    const { events, ended } = collect(source.pipe(eachInOrder(call(), (event) => Promise.resolve([event]))));
    source.next(text('a'));
    source.next(text('b'));
    source.error(new Error('cut'));
    await eventually(() => expect(ended).toEqual(['error cut']));
    expect(words(events)).toEqual(['a', 'b']);
  });

  test('a failure of the work ends the stream, and lets go of the source and of the gate', async () => {
    const context = call();
    const source = new Subject<GatewayEvent>();
    const { ended } = collect(source.pipe(eachInOrder(context, () => Promise.reject(new Error('work')))));
    source.next(text('a'));
    source.next(text('b'));
    await eventually(() => expect(ended).toEqual(['error work']));
    expect(source.observed).toBe(false);
    expect(context.gate.closed).toBe(false);
  });

  test('a failure at once is no different', async () => {
    const context = call();
    const source = new Subject<GatewayEvent>();
    const { ended } = collect(
      source.pipe(
        eachInOrder(context, () => {
          throw new Error('at once');
        }),
      ),
    );
    source.next(text('a'));
    await eventually(() => expect(ended).toEqual(['error at once']));
    expect(context.gate.closed).toBe(false);
  });

  test('an end that comes while the gate opens waits for what came before it', async () => {
    const context = call();
    const source = new Subject<GatewayEvent>();
    const { events, ended } = collect(source.pipe(eachInOrder(context, (event) => Promise.resolve([event]))));
    source.next(text('a'));
    const reader = {
      pause: () => {},
      resume() {
        context.gate.detach(reader);
        source.next(text('b'));
        source.complete();
      },
    };
    context.gate.attach(reader);
    await eventually(() => expect(ended).toEqual(['complete']));
    expect(words(events)).toEqual(['a', 'b']);
  });

  test('a client that leaves stops the work', async () => {
    const context = call();
    const source = new Subject<GatewayEvent>();
    const worked: string[] = [];
    const { events, stop } = collect(
      source.pipe(
        eachInOrder(context, async (event) => {
          worked.push(...words([event]));
          await new Promise((resolve) => setTimeout(resolve, 5));
          return [event];
        }),
      ),
    );
    source.next(text('a'));
    source.next(text('b'));
    stop();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(worked).toEqual(['a']);
    expect(events).toEqual([]);
    expect(context.gate.closed).toBe(false);
  });
});

describe('peekFirst', () => {
  test('rejects with a failure that came before anything else', async () => {
    const gate = new Gate();
    await expect(
      peekFirst(
        throwError(() => new Error('at once')),
        gate,
      ),
    ).rejects.toThrow('at once');
    expect(gate.closed).toBe(false);
  });

  test('gives everything from the first event on, and keeps the gate shut until somebody listens', async () => {
    const gate = new Gate();
    let source: Observer<string> | undefined;
    const promise = peekFirst(
      new Observable<string>((subscriber) => {
        source = subscriber;
        subscriber.next('a');
        subscriber.next('b');
      }),
      gate,
    );
    const stream = await promise;
    expect(gate.closed).toBe(true);
    const got: string[] = [];
    stream.subscribe({ next: (value) => got.push(value), complete: () => got.push('end') });
    expect(gate.closed).toBe(false);
    source?.next('c');
    source?.complete();
    expect(got).toEqual(['a', 'b', 'c', 'end']);
  });

  test('an empty stream and one that fails behind its first event are told when somebody listens', async () => {
    const gate = new Gate();
    const got: string[] = [];
    (await peekFirst(new Observable<string>((subscriber) => subscriber.complete()), gate)).subscribe({
      complete: () => got.push('end'),
    });
    const failing = new Observable<string>((subscriber) => {
      subscriber.next('a');
      subscriber.error(new Error('later'));
    });
    (await peekFirst(failing, gate)).subscribe({
      next: (value) => got.push(value),
      error: (error: Error) => got.push(error.message),
    });
    expect(got).toEqual(['end', 'a', 'later']);
    expect(gate.closed).toBe(false);
  });

  test('leaving lets go of the source, also while the first events are given', async () => {
    const gate = new Gate();
    let freed = 0;
    const source = new Observable<string>((subscriber) => {
      subscriber.next('a');
      subscriber.next('b');
      return () => {
        freed += 1;
      };
    });
    const stream = await peekFirst(source, gate);
    stream.subscribe().unsubscribe();
    expect(freed).toBe(1);
    const other = await peekFirst(source, gate);
    const got: string[] = [];
    other.subscribe(function once(value) {
      got.push(value);
    });
    expect(got).toEqual(['a', 'b']);
    expect(gate.closed).toBe(false);
  });
});

test('startWithEvents lets go of the rest when the client leaves', () => {
  const source = new Subject<GatewayEvent>();
  const { events, stop } = collect(startWithEvents([text('first')], source));
  source.next(text('second'));
  stop();
  expect(words(events)).toEqual(['first', 'second']);
  expect(source.observed).toBe(false);
});
