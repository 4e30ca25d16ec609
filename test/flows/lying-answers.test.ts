import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../core/model/json.ts';
import { hangUp, picture, post, startPlayground, type Playground } from '../fuzz/_other-operations.ts';
let ground: Playground;
let answer: (response: ServerResponse) => void;
beforeAll(async () => {
  ground = await startPlayground({}, (_, response) => answer(response));
});
afterAll(async () => {
  await ground.close();
  hangUp();
});
const speech = JSON.stringify({ model: 'tts-1', input: 'x', voice: 'a' });
test('a whole reply whose end is only a close, cut behind an inner brace, does not end well', async () => {
  answer = (response) => {
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}');
  };
  const got = await post(
    ground,
    '/v1/embeddings',
    JSON.stringify({ model: 'text-embedding-3-small', input: ['a', 'b'] }),
  );
  expect(got.status === 200 && got.ended).toBe(false);
});
test.each([
  '{"detail":"bad key"}',
  '{"message":"invalid token","code":1}',
  '{}',
  '{"error":{}}',
  '{"object":"error","message":"x","code":400}',
])('an error under 200 is told as one: %s', async (body) => {
  answer = (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  const got = await post(
    ground,
    '/v1/embeddings',
    JSON.stringify({ model: 'text-embedding-3-small', input: 'a' }),
  );
  expect(got.status).not.toBe(200);
});
test.each(['text/plain', 'application/octet-stream', undefined])(
  'an error under 200 labelled %s is no speech',
  async (type) => {
    answer = (response) =>
      void response
        .writeHead(200, type === undefined ? {} : { 'content-type': type })
        .end('{"error":{"message":"no such voice"}}');
    const got = await post(ground, '/v1/audio/speech', speech);
    expect(got.status).not.toBe(200);
  },
);
test('events in place of the bytes that were asked for are no file', async () => {
  answer = (response) =>
    void response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end('data: {"type":"speech.audio.delta","audio":"AQID"}\n\ndata: {"type":"speech.audio.done"}\n\n');
  const got = await post(ground, '/v1/audio/speech', speech);
  expect(got.text).not.toContain('speech.audio.delta');
});
test('$images of a client changes no image', async () => {
  answer = (response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"created":1,"data":[{"b64_json":"AAAA"}]}');
  const url = `data:image/png;base64,${picture.toString('base64')}`;
  await post(
    ground,
    '/v1/images/edits',
    JSON.stringify({
      model: 'dall-e-2',
      stream: true,
      prompt: 'x',
      images: [{ image_url: url }],
      $images: [{ image_url: 'https://other/x.png' }],
    }),
  );
  const sent = JSON.parse(ground.upstream.requests.at(-1)?.body.toString() ?? '{}') as JsonObject;
  expect(sent.images).toEqual([{ image_url: url }]);
});
test('$text of a client changes no prompt', async () => {
  answer = (response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"t1"}');
  await post(
    ground,
    '/api/v3/contents/generations/tasks',
    JSON.stringify({
      model: 'doubao-seedance-1-0-pro',
      content: [{ type: 'text', text: 'the moon' }],
      duration: 5,
      $text: 'the sun --dur 60',
      $content: [{ type: 'video_url', video_url: { url: 'https://x' } }],
    }),
  );
  const sent = JSON.parse(ground.upstream.requests.at(-1)?.body.toString() ?? '{}') as JsonObject;
  expect(sent.content).toEqual([{ type: 'text', text: 'the moon' }]);
});
test('a prompt far beyond its limit is refused without being taken apart', async () => {
  const body = JSON.stringify({ model: 'dall-e-2', prompt: 'x'.repeat(20_000_000) });
  const got = await post(ground, '/v1/images/generations', body);
  expect(got.status).toBe(400);
  expect(JSON.parse(got.text)).toMatchObject({ error: { param: 'prompt' } });
});
test('a picture that holds scripts is not labelled as such for a client', async () => {
  answer = (response) => void response.writeHead(200, { 'content-type': 'image/svg+xml' }).end('<svg/>');
  const got = await post(ground, '/v1/audio/speech', speech);
  expect(got.headers['content-type']).not.toContain('svg');
});
