import { describe, expect, onTestFinished, test } from 'vitest';
import learnedRefusals from '../../plugins/learned-refusals/index.ts';
import translation from '../../plugins/translation/index.ts';
import bedrock from '../../channels/bedrock/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/upstream.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { newDatabases } from './_one-database.ts';
import { bodiesOf, gatewayOf, openAi, provider, refusing, stage, text, unsupported } from './_refusals.ts';
import { call, fetchRaw, readError, voices, wholeReplies } from './_wire.ts';

describe('a setting that the provider refuses', () => {
  test.each([false, true])(
    'costs the first call one more request, and later calls none (stream: %s)',
    async (stream) => {
      const { callModel, sent } = await stage(openAi, refusing({ seed: unsupported('seed') }));
      const first = await callModel({ seed: 1, user: 'me' }, openAi, stream);
      expect(text(openAi, first, stream)).toBe('fine');
      expect(first.headers['x-sluice-loss']).toBe('seed');
      expect(sent()).toHaveLength(2);
      const second = await callModel({ seed: 2, user: 'me' }, openAi, stream);
      expect(text(openAi, second, stream)).toBe('fine');
      expect(second.headers['x-sluice-loss']).toBe('seed');
      expect(sent()).toHaveLength(3);
      expect(sent().map(({ seed }) => seed)).toEqual([1, undefined, undefined]);
      expect(sent().map(({ user }) => user)).toEqual(['me', 'me', 'me']);
    },
  );

  test('is named in the words of a client of another format', async () => {
    const refusal = unsupported(
      'temperature',
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    );
    const { callModel, sent } = await stage(openAi, refusing({ temperature: refusal }));
    const body = { generationConfig: { temperature: 0.2, maxOutputTokens: 9 } };
    for (const requests of [2, 3]) {
      const answer = await callModel(body, 'generate-content');
      expect(text('generate-content', answer)).toBe('fine');
      expect(answer.headers['x-sluice-loss']).toBe('generationConfig.temperature');
      expect(sent()).toHaveLength(requests);
    }
    expect(sent().at(-1)).toMatchObject({ max_completion_tokens: 9 });
  });

  test('may be followed by another one, in a later call', async () => {
    const judge = refusing({ seed: unsupported('seed'), user: unsupported('user') });
    const { callModel, sent } = await stage(openAi, judge);
    for (const [more, loss, requests] of [
      [{ seed: 1 }, 'seed', 2],
      [{ seed: 1, user: 'me' }, 'seed, user', 4],
      [{ seed: 1, user: 'me' }, 'seed, user', 5],
    ] as const) {
      const answer = await callModel(more);
      expect(text(openAi, answer)).toBe('fine');
      expect(answer.headers['x-sluice-loss']).toBe(loss);
      expect(sent()).toHaveLength(requests);
    }
  });

  test('and another one that is named after it need a second call, which has one further request too', async () => {
    const judge = refusing({ seed: unsupported('seed'), user: unsupported('user') });
    const { callModel, sent } = await stage(openAi, judge);
    const refused = await callModel({ seed: 1, user: 'me' });
    expect(readError(openAi, refused).status).toBe(400);
    expect(refused.text).toContain("Unsupported parameter: 'seed'");
    for (const requests of [4, 5]) {
      const answer = await callModel({ seed: 1, user: 'me' });
      expect(text(openAi, answer)).toBe('fine');
      expect(answer.headers['x-sluice-loss']).toBe('seed, user');
      expect(sent()).toHaveLength(requests);
    }
  });

  test('is left out for that model of that channel alone', async () => {
    const upstream = await provider(openAi, (body) =>
      body.model === 'a' && body.seed !== undefined ? unsupported('seed') : undefined,
    );
    const gateway = await gatewayOf({
      channels: [voices[openAi].channel(upstream.url, { models: ['a', 'b'] })],
    });
    for (const model of ['a', 'b']) {
      const body = { ...voices[openAi].body(model, false), seed: 1 };
      text(openAi, await call(gateway, openAi, model, false, { body }));
    }
    expect(bodiesOf(upstream).map(({ model, seed }) => [model, seed])).toEqual([
      ['a', 1],
      ['a', undefined],
      ['b', 1],
    ]);
  });

  test('is told to the operator once, with the option that makes it permanent', async () => {
    const { callModel, gateway } = await stage(openAi, refusing({ seed: unsupported('seed') }));
    await callModel({ seed: 1 });
    await callModel({ seed: 1 });
    const pluginLines = gateway.lines.filter(({ plugin }) => plugin === 'learned-refusals');
    expect(pluginLines).toMatchObject([
      {
        level: 'warn',
        channel: 'chat',
        model: 'via-chat',
        member: 'seed',
        option: "traits: { 'via-chat': { refusedMembers: ['seed'] } }",
      },
    ]);
  });

  test('is shown on the channel in the admin API, and counted in the metrics', async () => {
    const { callModel, gateway } = await stage(
      openAi,
      refusing({ seed: unsupported('seed') }),
      {},
      { adminPassword },
    );
    const admin = await logIn(gateway.url);
    const shown = async () => (await admin.request('listChannels')).channels[0]?.learned;
    expect(await shown()).toEqual([]);
    await callModel({ seed: 1 });
    await eventually(async () =>
      expect(await shown()).toMatchObject([
        {
          model: 'via-chat',
          member: 'seed',
          option: "traits: { 'via-chat': { refusedMembers: ['seed'] } }",
        },
      ]),
    );
    const metrics = await fetch(`${gateway.url}/metrics`);
    expect(await metrics.text()).toMatch(/^sluice_learned_refusals_total\{channel="chat"[^}]*\} 1$/m);
  });

  test('is charged and recorded as one call without a failed attempt', async () => {
    const config = { prices: { '*': { input: 1, output: 1 } } };
    const { callModel, gateway } = await stage(openAi, refusing({ seed: unsupported('seed') }), {}, config);
    await callModel({ seed: 1 });
    const log = openUsageLog(gateway.stores);
    const records = await eventually(async () => {
      const page = await log.page({}, 10);
      expect(page.records).toHaveLength(1);
      return page.records;
    });
    expect(records).toMatchObject([{ status: 200, input: 5, output: 7, microDollars: 12, losses: ['seed'] }]);
    expect(records[0]).not.toHaveProperty('attempts');
    expect(gateway.lines.filter(({ msg }) => msg === 'an attempt failed')).toEqual([]);
  });

  test('of a Responses request goes from the depth where it stands', async () => {
    const upstream = await startUpstream(({ body }, response) => {
      const { reasoning = {} } = JSON.parse(body.toString()) as { readonly reasoning?: object };
      const refusal = unsupported('reasoning.enabled', "Unknown parameter: 'reasoning.enabled'.");
      const isRefused = 'enabled' in reasoning;
      response
        .writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(isRefused ? refusal : wholeReplies.responses));
    });
    onTestFinished(() => upstream.close());
    const traits = { '*': { reasoning: 'effort' } };
    const gateway = await gatewayOf({ channels: [voices[openAi].channel(upstream.url, { traits })] });
    const body = { model: 'via-chat', input: 'hi', reasoning: { enabled: true, effort: 'low' } };
    for (const requests of [2, 3]) {
      const answer = await fetchRaw(gateway, '/v1/responses', { body });
      expect(answer.status).toBe(200);
      expect(answer.headers['x-sluice-loss']).toBe('reasoning.enabled');
      expect(upstream.requests).toHaveLength(requests);
      expect(bodiesOf(upstream).at(-1)).toEqual({ ...body, reasoning: { effort: 'low' } });
    }
  });

  test('of Bedrock goes from the object that holds it, in the client’s words', async () => {
    const upstream = await startUpstream(({ body }, response) => {
      const isRefused = body.includes('"top_k"');
      const message =
        'The model returned the following errors: Malformed input request: #: extraneous key [top_k] is not permitted, please reformat your input and try again.';
      const whole = {
        output: { message: { role: 'assistant', content: [{ text: 'fine' }] } },
        stopReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      };
      response
        .writeHead(isRefused ? 400 : 200, {
          'content-type': 'application/json',
          ...(isRefused ? { 'x-amzn-errortype': 'ValidationException' } : {}),
        })
        .end(JSON.stringify(isRefused ? { message } : whole));
    });
    onTestFinished(() => upstream.close());
    const model = 'amazon.nova-pro-v1:0';
    const gateway = await gatewayOf({
      channels: [
        bedrock({
          region: 'us-east-1',
          key: 'k',
          baseUrl: upstream.url,
          models: [model],
          // The operator takes the model for one that knows it.
          traits: { '*': { refuses: [] } },
        }),
      ],
    });
    const body = { ...voices.messages.body(model, false), top_k: 3, temperature: 0.5 };
    for (const requests of [2, 3]) {
      const answer = await call(gateway, 'messages', model, false, { body });
      expect(text('messages', answer)).toBe('fine');
      expect(answer.headers['x-sluice-loss']).toBe('top_k');
      expect(upstream.requests).toHaveLength(requests);
      expect(bodiesOf(upstream).at(-1)).toMatchObject({ inferenceConfig: { temperature: 0.5 } });
    }
  });

  test('is one of several that go at once', async () => {
    const refusal = {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message:
          'Invalid JSON payload received. Unknown name "topK" at \'generation_config\': Cannot find field.\nInvalid JSON payload received. Unknown name "seed" at \'generation_config\': Cannot find field.',
      },
    };
    const judge = refusing({ 'generationConfig.topK': refusal, 'generationConfig.seed': refusal });
    const { callModel, sent } = await stage('generate-content', judge);
    const answer = await callModel({ top_k: 3, max_tokens: 9 }, 'messages');
    // The seed was not sent: what the provider says is not true of this request.
    expect(readError('messages', answer).status).toBe(400);
    expect(sent()).toHaveLength(1);
    const config = { generationConfig: { topK: 3, seed: 4, temperature: 0.5 } };
    const passed = await callModel(config);
    expect(text('generate-content', passed)).toBe('fine');
    expect(passed.headers['x-sluice-loss']).toBe('generationConfig.topK, generationConfig.seed');
    expect(sent().at(-1)).toMatchObject({ generationConfig: { temperature: 0.5 } });
    expect(sent()).toHaveLength(3);
  });

  test('in the place of a limit moves to the name that the provider takes', async () => {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    const judge = refusing({ max_tokens: unsupported('max_tokens', message) });
    const { callModel, sent, gateway } = await stage(openAi, judge);
    for (const requests of [2, 3]) {
      const answer = await callModel({ max_tokens: 7 });
      expect(text(openAi, answer)).toBe('fine');
      expect(answer.headers).not.toHaveProperty('x-sluice-loss');
      expect(sent()).toHaveLength(requests);
      expect(sent().at(-1)).toMatchObject({ max_completion_tokens: 7 });
    }
    expect(gateway.lines.find(({ option }) => option !== undefined)?.option).toBe(
      "traits: { 'via-chat': { refusedMembers: [{ path: 'max_tokens', as: 'max_completion_tokens' }] } }",
    );
  });

  test('only beside another stays where it stands alone', async () => {
    const message = '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
    const refusal = { type: 'error', error: { type: 'invalid_request_error', message } };
    const { callModel, sent } = await stage(
      'messages',
      ({ temperature, top_p: topP }) =>
        temperature !== undefined && topP !== undefined ? refusal : undefined,
      { traits: { '*': { refuses: [] } } },
    );
    const both = await callModel({ temperature: 0.5, top_p: 0.9 });
    expect(text('messages', both)).toBe('fine');
    expect(both.headers['x-sluice-loss']).toBe('top_p');
    const alone = await callModel({ top_p: 0.9 });
    expect(alone.headers).not.toHaveProperty('x-sluice-loss');
    expect(sent().map(({ temperature, top_p: topP }) => [temperature, topP])).toEqual([
      [0.5, 0.9],
      [0.5, undefined],
      [undefined, 0.9],
    ]);
  });
});

describe('what was learned', () => {
  test('does not apply to strict clients: the first gets the refusal, later ones a 400 of the gateway', async () => {
    const { callModel, sent } = await stage(openAi, refusing({ seed: unsupported('seed') }));
    const strict = { 'x-sluice-strict': 'true' };
    const refused = await callModel({ seed: 1 }, openAi, false, strict);
    expect(readError(openAi, refused).status).toBe(400);
    expect(refused.text).toContain("Unsupported parameter: 'seed'");
    expect(sent()).toHaveLength(1);
    await callModel({ seed: 1 });
    expect(sent()).toHaveLength(3);
    const later = await callModel({ seed: 1 }, openAi, false, strict);
    expect(JSON.parse(later.text)).toMatchObject({
      error: { code: 'unsupported_parameter', param: 'seed' },
    });
    expect(sent()).toHaveLength(3);
  });

  test('is nothing where the operator wants no loss', async () => {
    const plugins = [translation({ strict: true })];
    const { callModel, sent } = await stage(openAi, refusing({ seed: unsupported('seed') }), {}, { plugins });
    for (const requests of [1, 2]) {
      const refused = await callModel({ seed: 1 });
      expect(readError(openAi, refused).status).toBe(400);
      expect(refused.text).toContain("Unsupported parameter: 'seed'");
      expect(sent()).toHaveLength(requests);
    }
  });

  test.each([
    ['learn: false of the channel', { learn: false }, {}],
    ['perHour: 0 of the plugin', {}, { plugins: [learnedRefusals({ perHour: 0 })] }],
    ['switching the plugin off', {}, { plugins: [learnedRefusals.off()] }],
  ])('is nothing with %s', async (_, options, config) => {
    const { callModel, sent } = await stage(openAi, refusing({ seed: unsupported('seed') }), options, config);
    for (const requests of [1, 2]) {
      expect(readError(openAi, await callModel({ seed: 1 })).status).toBe(400);
      expect(sent()).toHaveLength(requests);
    }
  });

  test('changes no byte of a request that has nothing of it', async () => {
    const { callModel, upstream, gateway } = await stage(openAi, refusing({ seed: unsupported('seed') }));
    const body =
      '{ "model" : "via-chat", "x":12345678901234567890, "messages":[{"role":"user","content":"seed"}] }';
    const sendBody = () => call(gateway, openAi, 'via-chat', false, { body });
    await sendBody();
    await callModel({ seed: 1 });
    await sendBody();
    expect(upstream.requests[0]?.body.toString()).toBe(body);
    expect(upstream.requests.at(-1)?.body.toString()).toBe(body);
  });

  test('holds for the channel that a call falls back to', async () => {
    const down = await provider(openAi, () => [503, { error: { message: 'Try later.' } }]);
    const strictOne = await provider(openAi, refusing({ seed: unsupported('seed') }));
    const channel = voices[openAi].channel;
    const gateway = await gatewayOf({
      channels: [channel(down.url, { id: 'down', priority: 1 }), channel(strictOne.url, { id: 'strict' })],
    });
    const body = { ...voices[openAi].body('via-chat', false), seed: 1 };
    for (const requests of [2, 3]) {
      const answer = await call(gateway, openAi, 'via-chat', false, { body });
      expect(text(openAi, answer)).toBe('fine');
      expect(answer.headers['x-sluice-loss']).toBe('seed');
      expect(strictOne.requests).toHaveLength(requests);
    }
    expect(bodiesOf(down)[0]).toMatchObject({ seed: 1 });
  });

  test('of a hedged call costs one further request in all', async () => {
    const silent = await startUpstream(() => {});
    onTestFinished(() => silent.close());
    const hedged = await provider(openAi, refusing({ seed: unsupported('seed') }));
    const { channel, body } = voices[openAi];
    const gateway = await gatewayOf({
      channels: [channel(silent.url, { id: 'silent', priority: 1 }), channel(hedged.url, { id: 'hedged' })],
      routing: { hedge: { after: 10 } },
    });
    const request = { ...body('via-chat', true), seed: 1 };
    const answer = await call(gateway, openAi, 'via-chat', true, { body: request });
    expect(text(openAi, answer, true)).toBe('fine');
    expect(answer.headers['x-sluice-loss']).toBe('seed');
    expect(bodiesOf(silent).map(({ seed }) => seed)).toEqual([1]);
    expect(bodiesOf(hedged).map(({ seed }) => seed)).toEqual([1, undefined]);
  });
});

describe.each(newDatabases())('gateways on one database ($kind)', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'share what was learned, those that run and those that start later',
    async () => {
      const upstream = await provider(openAi, refusing({ seed: unsupported('seed') }));
      const database = await url();
      const start = () =>
        gatewayOf({
          database,
          plugins: [learnedRefusals({ follow: 100 })],
          channels: [voices[openAi].channel(upstream.url)],
        });
      const body = { ...voices[openAi].body('via-chat', false), seed: 1 };
      const sendChat = async (gateway: Awaited<ReturnType<typeof start>>): Promise<number> => {
        const before = upstream.requests.length;
        expect(text(openAi, await call(gateway, openAi, 'via-chat', false, { body }))).toBe('fine');
        return upstream.requests.length - before;
      };
      const [first, running] = [await start(), await start()];
      expect(await sendChat(first)).toBe(2);
      const entries = first.stores.namespace('learned-refusals');
      await eventually(async () => (await entries.get('["chat","via-chat","seed"]')) !== undefined);
      await eventually(async () => (await sendChat(running)) === 1);
      const later = await start();
      await eventually(async () => (await sendChat(later)) === 1);
    },
  );
});
