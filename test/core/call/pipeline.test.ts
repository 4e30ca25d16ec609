import { EMPTY, of, type Observable } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import type { Handler, Next, Stage } from '../../../core/sdk/define.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { compose, orderPlugins, type Running } from '../../../core/call/pipeline.ts';
import { testCall } from '../../support/call.ts';

const { call } = testCall({ model: 'x' });
const answer: Next = async () => EMPTY;

function plugin(name: string, handler: Handler, stage: Stage = 'shape'): Running {
  return { name, stage, after: [], handler };
}

function ordered(...plugins: { name: string; stage: Stage; after?: string[]; before?: string[] }[]) {
  const { order, problems } = orderPlugins(plugins);
  return problems.length > 0 ? problems : order.map(({ name }) => name);
}

describe('the order of plugins', () => {
  test('is that of the stages, then that of the list', () => {
    expect(
      ordered(
        { name: 'translation', stage: 'translate' },
        { name: 'b', stage: 'shape' },
        { name: 'a', stage: 'shape' },
        { name: 'quota', stage: 'admit' },
        { name: 'auth', stage: 'identify' },
        { name: 'logging', stage: 'observe' },
      ),
    ).toEqual(['logging', 'auth', 'quota', 'b', 'a', 'translation']);
  });

  test('puts a plugin behind those that it names', () => {
    expect(
      ordered(
        { name: 'a', stage: 'shape', after: ['c'] },
        { name: 'b', stage: 'shape' },
        { name: 'c', stage: 'shape', after: ['b', 'auth'] },
        { name: 'auth', stage: 'identify' },
      ),
    ).toEqual(['auth', 'b', 'c', 'a']);
  });

  test('puts a plugin before those that it names, where they are on', () => {
    expect(
      ordered(
        { name: 'translation', stage: 'translate' },
        { name: 'compaction', stage: 'translate', before: ['translation', 'vault'] },
        { name: 'vault', stage: 'translate', before: ['translation'] },
        { name: 'a', stage: 'shape', before: ['nobody'] },
      ),
    ).toEqual(['a', 'compaction', 'vault', 'translation']);
  });

  test('lets a plugin that names itself wait for nobody', () => {
    expect(
      ordered({ name: 'a', stage: 'shape', after: ['a'], before: ['a'] }, { name: 'b', stage: 'shape' }),
    ).toEqual(['a', 'b']);
  });

  test('names plugins that wait for each other', () => {
    expect(
      ordered({ name: 'a', stage: 'shape', after: ['b'] }, { name: 'b', stage: 'shape', after: ['a'] }),
    ).toEqual(['plugins "a", "b" depend on each other in "after" and "before": remove one of the names.']);
  });

  test('cannot put a plugin behind one of a later stage', () => {
    expect(ordered({ name: 'a', stage: 'admit', after: ['b'] }, { name: 'b', stage: 'shape' })).toEqual([
      'plugin "a" (stage admit) must run after "b", which belongs to the later stage shape.',
    ]);
  });

  test('says why a plugin that is needed does not run, and what to do', () => {
    const quota = { name: 'quota', stage: 'admit', after: ['auth'] } as const;
    const off = new Map([['auth', 'gateway.config.ts (plugins[0])']]);
    expect(orderPlugins([quota], { off }).problems).toEqual([
      'plugin "quota" must run after "auth", which is off in gateway.config.ts (plugins[0]). Remove the off(), or switch "quota" off too.',
    ]);
    expect(orderPlugins([quota], { unlisted: new Set(['auth']) }).problems).toEqual([
      'plugin "quota" must run after "auth", which runs only when it is listed. Add it to plugins, or switch "quota" off.',
    ]);
    expect(orderPlugins([quota]).problems).toEqual([
      'plugin "quota" must run after "auth", which does not exist. Check the spelling of the name in "after".',
    ]);
  });

  test('knows no other stages', () => {
    expect(ordered({ name: 'a', stage: 'observer' as Stage })).toEqual([
      'plugin "a" has the stage "observer": write one of observe, identify, admit, shape, translate.',
    ]);
  });
});

describe.each([
  ['in production', false],
  ['with checks', true],
])('a composed pipeline, %s', (_where, checked) => {
  test('runs from the outside in and back', async () => {
    const seen: string[] = [];
    const named = (name: string): Running =>
      plugin(name, async (inner, next) => {
        seen.push(`${name} in`);
        const events = await next(inner);
        seen.push(`${name} out`);
        return events;
      });
    await compose([named('one'), named('two')], answer, checked)(call);
    expect(seen).toEqual(['one in', 'two in', 'two out', 'one out']);
  });

  test('is the terminal itself without plugins', () => {
    expect(compose([], answer, checked)).toBe(answer);
  });

  test('hands on what a plugin made of the call', async () => {
    const terminal = vi.fn<Next>(answer);
    const rename = plugin('rename', (inner, next) => next(inner.with({ model: 'y' })));
    await compose([rename], terminal, checked)(call);
    expect(terminal.mock.calls[0]?.[0].model).toBe('y');
    expect(call.model).toBe('x');
  });

  test('makes a rejection of what a handler throws before it returns a promise', async () => {
    const refusing = plugin('refusing', () => {
      throw new Error('at once');
    });
    const forgiving = plugin('forgiving', (inner, next) => next(inner).catch(() => EMPTY));
    await expect(compose([refusing], answer, checked)(call)).rejects.toThrow('at once');
    expect(await compose([forgiving, refusing], answer, checked)(call)).toBe(EMPTY);
  });

  test('takes a stream that a handler gives without a promise', async () => {
    const outer: Handler = (inner, next) => next(inner).then((events) => events);
    const sync = (() => EMPTY) as unknown as Handler;
    const unreachable: Next = () => expect.unreachable('next was called');
    const run = compose([plugin('outer', outer), plugin('sync', sync)], unreachable, checked);
    expect(await run(call)).toBe(EMPTY);
  });

  test('lets a plugin answer by itself, refuse, and try again after a failure', async () => {
    const unreachable: Next = () => expect.unreachable('next was called');
    const own: Observable<GatewayEvent> = of({ type: 'head', id: '1', model: 'x' });
    expect(await compose([plugin('own', async () => own)], unreachable, checked)(call)).toBe(own);
    await expect(
      compose([plugin('no', () => Promise.reject(new Error('no')))], unreachable, checked)(call),
    ).rejects.toThrow('no');
    const flaky = vi.fn<Next>(answer).mockRejectedValueOnce(new Error('once'));
    const retry = plugin('retry', async (inner, next) => {
      try {
        return await next(inner);
      } catch {
        return next(inner);
      }
    });
    expect(await compose([retry], flaky, checked)(call)).toBe(EMPTY);
  });
});

test('the checks let a plugin make calls of its own, before and after it has returned', async () => {
  let later: Promise<unknown> = Promise.resolve();
  const handler: Handler = async (inner, next) => {
    await next(inner.with({ decoded: true }));
    const events = await next(inner);
    later = new Promise((resolve) => setImmediate(resolve)).then(() => next(inner.with({ decoded: true })));
    return events;
  };
  await compose([plugin('busy', handler)], answer, true)(call);
  await expect(later).resolves.toBe(EMPTY);
});

describe('the checks name the plugin that', () => {
  const run = (handler: Handler, terminal: Next = answer) =>
    compose([plugin('clumsy', handler)], terminal, true)(call);

  test('calls next twice', async () => {
    await expect(
      run(async (inner, next) => {
        await next(inner);
        return next(inner);
      }),
    ).rejects.toThrow('plugin "clumsy" called next() twice');
  });

  test('returns before next has resolved', async () => {
    const slow: Next = () => new Promise((resolve) => setTimeout(resolve, 5, EMPTY));
    await expect(
      run(async (inner, next) => {
        void next(inner);
        return EMPTY;
      }, slow),
    ).rejects.toThrow('plugin "clumsy" returned before next resolved: await next(call).');
  });

  test('returns before next has failed, without an unhandled rejection', async () => {
    const unhandled = vi.fn<() => void>();
    process.on('unhandledRejection', unhandled);
    const late: Next = () => new Promise((_resolve, reject) => setTimeout(reject, 5, new Error('late')));
    await expect(
      run(async (inner, next) => {
        void next(inner);
        return EMPTY;
      }, late),
    ).rejects.toThrow('returned before next resolved');
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test('calls next after it had returned', async () => {
    let kept: Next | undefined;
    await run(async (_inner, next) => {
      kept = next;
      return EMPTY;
    });
    await expect(kept?.(call)).rejects.toThrow('plugin "clumsy" called next() after it had returned.');
  });

  test('forgets the call', async () => {
    const broken = ((_inner: unknown, next: () => unknown) => next()) as unknown as Handler;
    await expect(run(broken)).rejects.toThrow(
      'plugin "clumsy" called next() without a call: write next(call).',
    );
  });

  test('returns no stream', async () => {
    for (const value of [undefined, [], { pipe: () => {} }]) {
      // oxlint-disable-next-line no-await-in-loop
      await expect(run((async () => value) as unknown as Handler)).rejects.toThrow(
        'plugin "clumsy" returned no stream',
      );
    }
  });
});
