import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { ChannelEntry, GatewayConfig } from 'sluice';
import assemblyai from '../../channels/assemblyai.ts';
import bedrock from '../../channels/bedrock/index.ts';
import openai from '../../channels/openai.ts';
import watsonx from '../../channels/watsonx/index.ts';
import translation from '../../plugins/translation/index.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { writeLong } from './_endless.ts';

const mebibyte = 1024 * 1024;
/** More than a provider's answer may be where a channel reads it itself, in bytes. */
const tooLong = 120 * mebibyte;
/** Bytes that sockets and buffers may hold in addition. On a busy machine Linux lets a receiving socket hold 32 MiB. */
const onTheWay = 40 * mebibyte;

let gateway: TestGateway | undefined;
let provider: ScriptedUpstream | undefined;
afterEach(async () => {
  await gateway?.close();
  await provider?.close();
  gateway = provider = undefined;
});

/** A channel in front of a provider that sends too much to a request of a path, and the number of bytes that were read of it. */
async function start(
  channel: (url: string) => ChannelEntry,
  answer: (
    request: SeenRequest,
  ) => { readonly headers?: Record<string, string>; readonly member: string } | string,
  plugins: GatewayConfig['plugins'] = [],
): Promise<{ readonly running: TestGateway; readonly taken: () => number | undefined }> {
  let taken: number | undefined;
  const long = async (response: ServerResponse, member: string): Promise<void> => {
    taken = await writeLong(response, tooLong, member);
  };
  provider = await startUpstream((request, response) => {
    const wanted = answer(request);
    const json = { 'content-type': 'application/json' };
    if (typeof wanted === 'string') {
      response.writeHead(200, json).end(wanted);
      return;
    }
    response.writeHead(200, { ...json, ...wanted.headers });
    void long(response, wanted.member);
  });
  gateway = await startGateway({ channels: [channel(provider.url)], routing: { attempts: 1 }, plugins });
  return { running: gateway, taken: () => taken };
}

const post = ({ url, key }: TestGateway, path: string, body: string | FormData): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
    },
    body,
  });

describe('a provider that sends more than is read', () => {
  test('embeddings of Bedrock: the client gets an error that names the limit, and the provider is let go of', async () => {
    const { running, taken } = await start(
      (url) => bedrock({ region: 'us-east-1', key: 'k', baseUrl: url }),
      () => ({ member: 'id', headers: { 'x-amzn-bedrock-input-token-count': '7' } }),
    );
    const answer = await post(
      running,
      '/v1/embeddings',
      JSON.stringify({ model: 'cohere.embed-v4:0', input: 'a' }),
    );
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining(`more than ${32 * mebibyte} bytes`) as string,
    ]);
    await eventually(() => expect(taken()).toBeDefined());
    expect(taken()).toBeLessThan(32 * mebibyte + onTheWay);
  });

  test('a chat in the format of the client: the limit of the operator is kept where it does not look like a reply', async () => {
    const { running, taken } = await start(
      (url) => openai({ key: 'k', baseUrl: url, models: ['gpt-a'] }),
      () => ({ member: 'id' }),
      [translation({ wholeLimit: mebibyte })],
    );
    const body = JSON.stringify({ model: 'gpt-a', messages: [{ role: 'user', content: 'Hi' }] });
    const answer = await post(running, '/v1/chat/completions', body);
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining(`more than ${mebibyte} bytes`) as string,
    ]);
    await eventually(() => expect(taken()).toBeDefined());
    expect(taken()).toBeLessThan(mebibyte + onTheWay);
  });

  test('a step of a job', async () => {
    const { running, taken } = await start(
      (url) => assemblyai({ key: 'k', baseUrl: url }),
      ({ url }) =>
        url.endsWith('/upload') ? '{"upload_url":"https://files.example/1"}' : { member: 'text' },
    );
    const form = new FormData();
    form.set('model', 'universal');
    form.set('file', new Blob([Buffer.from('RIFF\0\0\0\0WAVEfmt ', 'latin1')]), 'a.wav');
    const answer = await post(running, '/v1/audio/transcriptions', form);
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining(`more than ${32 * mebibyte} bytes`) as string,
    ]);
    await eventually(() => expect(taken()).toBeDefined());
    expect(taken()).toBeLessThan(32 * mebibyte + onTheWay);
  });

  test('an access token', async () => {
    const { running, taken } = await start(
      (url) => watsonx({ key: 'k', baseUrl: url, tokenUrl: `${url}/identity/token`, project: 'p' } as never),
      () => ({ member: 'access_token' }),
    );
    const answer = await post(
      running,
      '/v1/chat/completions',
      JSON.stringify({ model: 'ibm/granite-3-8b-instruct', messages: [{ role: 'user', content: 'Hi' }] }),
    );
    expect(answer.status).toBeGreaterThanOrEqual(500);
    await eventually(() => expect(taken()).toBeDefined());
    expect(taken()).toBeLessThan(4 * mebibyte + onTheWay);
  });

  test('a list of models', async () => {
    const { taken } = await start(
      (url) => openai({ key: 'k', baseUrl: url, models: 'discover' }),
      () => ({ member: 'data' }),
    );
    await eventually(() => expect(taken()).toBeDefined());
    expect(taken()).toBeLessThan(4 * mebibyte + onTheWay);
  });
});
