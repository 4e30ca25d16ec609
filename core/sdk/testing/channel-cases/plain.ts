/** Test cases of every channel for plain texts and secrecy, and cases for features that some providers lack. */
import assert from 'node:assert/strict';
import { at } from '../../../conformance/trial.ts';
import { ended, reply, thought, toolCall } from '../script.ts';
import { answered, textOf } from './answers.ts';
import { lastPost, key, type MakeCase } from './scene.ts';
import type { ChannelCase, Lack } from './tested.ts';

/** Cases for texts, and for secrets in responses, logs and requests. */
export function textCases(one: MakeCase): readonly ChannelCase[] {
  return [
    one(
      'answers with a text, and tells what was used',
      { says: reply('Good day.') },
      async ({ request, received }) => {
        const body = await answered(await request({}));
        assert.equal(at(body, 'choices', 0, 'message', 'content'), 'Good day.');
        assert.equal(at(body, 'choices', 0, 'finish_reason'), 'stop');
        assert.deepEqual(
          [at(body, 'usage', 'prompt_tokens'), at(body, 'usage', 'completion_tokens')],
          [10, 5],
        );
        assert.equal(textOf(received()), 'Hello');
        assert.equal(received().stream, false);
      },
    ),
    one(
      'answers where its provider compresses although it was not asked to',
      { says: reply('Good day.'), compressed: true },
      async ({ request }) => {
        const body = await answered(await request({}));
        assert.equal(at(body, 'choices', 0, 'message', 'content'), 'Good day.');
      },
    ),
    one(
      'sends no length and no validator of other bytes than its own',
      { says: reply('Good day.') },
      async ({ request }) => {
        const answer = await request({});
        const { length } = Buffer.from(await answer.arrayBuffer());
        assert.equal(answer.status, 200);
        const stated = answer.headers.get('content-length');
        assert.ok(
          stated === null || Number(stated) === length,
          `the length is ${stated}, of ${length} bytes`,
        );
        for (const name of ['content-encoding', 'etag'])
          assert.equal(answer.headers.get(name), null, `${name} is that of the provider`);
      },
    ),
    one(
      'shows its key to the provider alone',
      { says: reply('Good day.') },
      async ({ request, provider, gateway }) => {
        const answer = await request({});
        const shown = `${JSON.stringify([...answer.headers])}${await answer.text()}${JSON.stringify(gateway.lines)}`;
        assert.ok(!shown.includes(key), 'the key is in the answer or in the log');
        const { body, headers } = lastPost(provider);
        assert.ok(!body.includes(key), 'the key is in the body of the request');
        assert.ok(
          !JSON.stringify(headers).includes(gateway.key),
          'the provider has seen the key of the client',
        );
      },
    ),
    one(
      'tells nobody where its provider stands when that is away',
      { says: reply('Good day.') },
      async ({ request, provider }) => {
        await provider.close();
        const answer = await request({});
        const { host } = new URL(provider.url);
        assert.ok(answer.status >= 500, `the status is ${answer.status}`);
        assert.ok(!(await answer.text()).includes(host), 'the address is in the answer');
      },
    ),
  ];
}

/** Cases for optional features, each with the name of the feature that a channel may lack. */
export function featureCases(one: MakeCase): readonly (readonly [Lack, ChannelCase])[] {
  return [
    [
      'images',
      one('takes images', { says: reply('A dot.') }, async ({ request, received }) => {
        const data =
          'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
        const content = [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ];
        await answered(await request({ messages: [{ role: 'user', content }] }));
        const blocks = received().request.messages.flatMap((message) => message.content);
        const image = blocks.find((block) => block.type === 'image');
        assert.ok(
          image?.type === 'image' && JSON.stringify(image.source).includes(data),
          'no image has arrived',
        );
      }),
    ],
    [
      'structured output',
      one(
        'gives structured output',
        {
          says: ({ request: { toolChoice } }) =>
            toolChoice?.type === 'tool'
              ? ended({ finish: 'tool-calls' }, toolCall(toolChoice.name, { city: 'Oslo' }))
              : reply('{"city":"Oslo"}'),
        },
        async ({ request }) => {
          const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
          const body = await answered(
            await request({
              response_format: { type: 'json_schema', json_schema: { name: 'place', schema, strict: true } },
            }),
          );
          const content = at(body, 'choices', 0, 'message', 'content');
          assert.deepEqual(JSON.parse(String(content)), { city: 'Oslo' });
        },
      ),
    ],
    [
      'reasoning',
      one(
        'passes reasoning on',
        { says: reply(thought('They greet.'), 'Good day.') },
        async ({ request }) => {
          const body = await answered(await request({ reasoning_effort: 'low' }));
          assert.equal(at(body, 'choices', 0, 'message', 'content'), 'Good day.');
          assert.equal(at(body, 'choices', 0, 'message', 'reasoning_content'), 'They greet.');
        },
      ),
    ],
    [
      'limits',
      one(
        'keeps the limit of the output',
        { says: ended({ finish: 'length' }, 'Once') },
        async ({ request, received }) => {
          const body = await answered(await request({ max_tokens: 17 }));
          assert.equal(received().request.settings.maxOutput, 17);
          assert.equal(at(body, 'choices', 0, 'finish_reason'), 'length');
        },
      ),
    ],
  ];
}
