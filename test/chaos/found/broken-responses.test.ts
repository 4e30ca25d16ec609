import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WireFrame } from '../../../core/sdk/format.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';
import { dialects } from '../dialects.ts';

const { responses } = dialects;
let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const frames = responses.frames(['one', ' two', ' three']).slice(0, 6);
    response.write(frames.join(''), () => setTimeout(() => response.end(), 20));
  });
  gateway = await startGateway({ channels: [responses.channel(upstream.url)] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

test('the error behind a stream of Responses that passed as it came has the number that is next', async () => {
  const response = await fetch(gateway.url + responses.path(responses.model, true), {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(responses.body(responses.model, true)),
  });
  const frames = parseSse(await response.text()).map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    json: JSON.parse(data) as Extract<WireFrame, { json: unknown }>['json'],
  }));
  expect(frames.at(-1)).toMatchObject({ event: 'error', json: { type: 'error' } });
  expect(responses.problems(frames)).toEqual([]);
});
