import { map } from 'rxjs';
import { addReplyHeaders, definePlugin, GatewayError, type GatewayEvent } from 'sluice';
import {
  cut,
  ended,
  fail,
  pause,
  reply,
  testPlugins,
  text,
  thought,
  toolCall,
  virtualClock,
} from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

const shouting = definePlugin({
  name: 'shouting',
  stage: 'shape',
  reads: 'content',
  options: z.object({ sign: z.string().default('!') }),
  setup:
    ({ sign }) =>
    async (call, next) => {
      if (call.body['quiet'] === true) throw new GatewayError('forbidden', 'Not here.');
      addReplyHeaders(call, { 'x-loud': 'yes' });
      const louder = (event: GatewayEvent): GatewayEvent =>
        event.type === 'text-delta' ? { ...event, text: event.text.toUpperCase() + sign } : event;
      return (await next(call.with({ model: `loud-${call.model}` }))).pipe(map(louder));
    },
});

async function tested(...wanted: Parameters<typeof testPlugins>) {
  const made = await testPlugins(...wanted);
  onTestFinished(() => made.close());
  return made;
}

const formats = ['chat-completions', 'messages', 'responses', 'generate-content'] as const;

describe('a plugin under test', () => {
  test.each(formats)('changes what the channel is sent and what a client of %s gets', async (format) => {
    const { run } = await tested(shouting);
    const whole = await run({ format, messages: ['hello', 'hi', 'again'] }, { reply: 'fine' });
    expect(whole).toMatchObject({
      status: 200,
      text: 'FINE!',
      headers: { 'x-loud': 'yes' },
      error: undefined,
    });
    expect(JSON.stringify(whole.body)).toContain('FINE!');
    expect(whole.sent).toMatchObject([{ model: 'loud-test-model', stream: false, text: 'hello\nhi\nagain' }]);

    const streamed = await run({ format, stream: true }, { reply: reply(thought('hm'), text('fi', 'ne')) });
    expect(streamed).toMatchObject({ status: 200, text: 'FI!NE!', body: undefined });
    expect(streamed.wire).toMatch(/FI![^]*NE!/);
    expect(streamed.sent).toMatchObject([{ stream: true }]);
  });

  test.each(formats)('refuses in the words of %s', async (format) => {
    const refusing = definePlugin({
      name: 'refusing',
      stage: 'identify',
      setup: () => () => Promise.reject(new GatewayError('forbidden', 'Not here.')),
    });
    const { run } = await tested([refusing(), shouting({ sign: '?' })]);
    const outcome = await run({ format });
    expect(outcome).toMatchObject({ status: 403, sent: [], error: { code: 'forbidden' } });
    expect(JSON.stringify(outcome.body)).toContain('Not here.');
  });

  test('meets a stream that is cut, one that fails at once, and a client who leaves', async () => {
    const { run } = await tested(shouting);
    const broken = await run({ stream: true }, { reply: reply('half', cut(), 'never') });
    expect(broken).toMatchObject({ text: 'HALF!', error: { code: 'upstream_cut' } });
    expect(broken.wire).toContain('upstream_cut');
    const failed = await run('hello', { reply: reply(fail(new GatewayError('upstream_error', 'Down.'))) });
    expect(failed).toMatchObject({ status: 502, events: [], error: { code: 'upstream_error' } });
    const left = await run({ stream: true }, { reply: reply(text('a', 'b', 'c')), leaveAfter: 3 });
    expect(left).toMatchObject({ text: 'A!', error: undefined });
  });

  test('sees pauses of a minute at once, by a clock that is moved', async () => {
    const { run } = await tested(shouting);
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    let isOver = false;
    const running = run({ stream: true }, { reply: reply('well', pause(60_000), 'then') }).then((outcome) => {
      isOver = true;
      return outcome;
    });
    await clock.advance(59_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    const { text: words, times } = await running;
    expect(words).toBe('WELL!THEN!');
    expect(times[0]).toBe(0);
    expect(times.at(-1)).toBe(60_000);
  });

  test('finds what it has kept, its prices, its channels and its log', async () => {
    const counting = definePlugin({
      name: 'counting',
      stage: 'shape',
      setup: (_options, { stores, prices, catalog, log, calls }) => {
        const counts = stores.namespace<number>('counting');
        return async (call, next) => {
          const count = ((await counts.get('calls')) ?? 0) + 1;
          await counts.set('calls', count);
          log.info({ count, most: prices.most(call.model, 1_000_000, 0), calls: typeof calls }, 'counted');
          return next(call.with({ model: catalog.targets('small')[0]?.model ?? 'none' }));
        };
      },
    });
    const { run, lines } = await tested(counting, {
      channels: { cheap: ['small'], dear: ['test-*'] },
      settings: { prices: { 'test-model': { input: 2, output: 8 } } },
    });
    await run('one');
    const { sent } = await run('two');
    expect(sent).toMatchObject([{ model: 'small', text: 'two' }]);
    expect(lines).toContainEqual(
      expect.objectContaining({ count: 2, most: 2_000_000, calls: 'function', msg: 'counted' }),
    );
  });

  test('is told what is wrong with its options, and that no channel has the model', async () => {
    await expect(testPlugins(shouting({ sign: 1 as never }))).rejects.toThrow(/expected string/);
    const { run } = await tested(shouting, { channels: { one: ['other'] } });
    expect(await run('hello')).toMatchObject({ status: 503, error: { code: 'no_available_channel' } });
  });
});

test('a script makes tool calls, ends as it is told and says what was used', async () => {
  const { run } = await tested([]);
  const { body, events } = await run('weather?', {
    reply: ended(
      { usage: { output: 7 } },
      toolCall('weather', { city: 'Oslo' }),
      toolCall('weather', { city: 'Rome' }),
    ),
  });
  expect(body).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          tool_calls: [{ function: { arguments: '{"city":"Oslo"}' } }, { function: { name: 'weather' } }],
        },
      },
    ],
    usage: { completion_tokens: 7 },
  });
  expect(events.at(-1)).toMatchObject({ type: 'usage' });
});
