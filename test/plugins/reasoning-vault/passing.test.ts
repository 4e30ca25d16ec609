import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import deepseek from '../../../channels/deepseek.ts';
import openai from '../../../channels/openai.ts';
import openrouter from '../../../channels/openrouter.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

type Json = Readonly<Record<string, unknown>>;

const kinds = { deepseek, openai, openrouter };

/** A provider of chat completions that says these deltas, and a gateway with a channel of this kind in front of it. */
async function setUp(
  kind: keyof typeof kinds,
  deltas: readonly Json[],
): Promise<{ readonly gateway: TestGateway; readonly upstream: ScriptedUpstream }> {
  const upstream = await startUpstream((request, response) => {
    const { stream } = JSON.parse(String(request.body)) as { stream?: boolean };
    if (stream) streamed(response, deltas);
    else whole(response, deltas);
  });
  open.push(upstream);
  const gateway = await startGateway({
    channels: [kinds[kind]({ key: 'k', baseUrl: `${upstream.url}/v1`, models: { m: 'm' }, discover: false })],
  });
  open.push(gateway);
  return { gateway, upstream };
}

function streamed(response: ServerResponse, deltas: readonly Json[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (delta: Json, finish: string | null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  for (const delta of deltas) response.write(chunk(delta, null));
  response.end(`${chunk({}, 'tool_calls')}data: [DONE]\n\n`);
}

function whole(response: ServerResponse, deltas: readonly Json[]): void {
  const message: Record<string, unknown> = { role: 'assistant', content: null };
  for (const delta of deltas) {
    for (const [name, value] of Object.entries(delta)) {
      const before = message[name];
      if (Array.isArray(value)) message[name] = [...((before as unknown[]) ?? []), ...value];
      else if (typeof value === 'string') message[name] = ((before as string | null) ?? '') + value;
    }
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  );
}

const call = {
  index: 0,
  id: 'call_Ab12Cd34Ef56',
  type: 'function',
  function: { name: 'find', arguments: '{"q":"a"}' },
};
const user = { role: 'user', content: 'Find it.' };

/** Asks, gets a call, and sends back what a client keeps that knows the official fields only. Gives the turn as the provider then sees it. */
async function returned(
  { gateway, upstream }: Awaited<ReturnType<typeof setUp>>,
  { stream, offer = true, keep = {} }: { stream: boolean; offer?: boolean; keep?: Json },
): Promise<{ readonly turn: Json | undefined; readonly losses: string | null; readonly bytes: string }> {
  const send = async (messages: readonly Json[]): Promise<Response> => {
    const tools = [{ type: 'function', function: { name: 'find', parameters: { type: 'object' } } }];
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: 'm', messages, stream, ...(offer ? { tools } : {}) }),
    });
    expect(response.status).toBe(200);
    return response;
  };
  const bytes = await (await send([user])).text();
  const { index: _, ...made } = call;
  const kept = { role: 'assistant', content: null, tool_calls: [made], ...keep };
  const second = await send([user, kept, { role: 'tool', tool_call_id: made.id, content: 'found' }]);
  await second.text();
  const { messages } = JSON.parse(String(upstream.requests[1]?.body)) as { messages: Json[] };
  return { turn: messages[1], losses: second.headers.get('x-sluice-loss'), bytes };
}

describe.each([true, false])('reasoning in a reply that passes through, streamed: %s', (stream) => {
  test('without a proof comes back where the model wants it', async () => {
    const setup = await setUp('deepseek', [
      { role: 'assistant', content: null, reasoning_content: 'Look ' },
      { content: null, reasoning_content: 'first — 世界.' },
      { tool_calls: [call] },
    ]);
    const { turn, losses } = await returned(setup, { stream });
    expect(turn?.reasoning_content).toBe('Look first — 世界.');
    expect(losses).toBeNull();
  });

  test('comes back as the entries with their signatures that it was', async () => {
    const signed = {
      type: 'reasoning.text',
      text: 'Look.',
      signature: 'Sig+/==',
      format: 'anthropic-claude-v1',
      index: 0,
    };
    const hidden = { type: 'reasoning.encrypted', data: 'Enc+/==', format: 'anthropic-claude-v1', index: 1 };
    const setup = await setUp('openrouter', [
      { reasoning_details: [signed] },
      { reasoning_details: [hidden] },
      { tool_calls: [call] },
    ]);
    const { turn, losses } = await returned(setup, { stream });
    expect(turn?.reasoning_details).toEqual([signed, hidden]);
    expect(losses).toBeNull();
  });

  test("has Google's signature on the call again", async () => {
    const extra_content = { google: { thought_signature: 'Goo+/==' } };
    const setup = await setUp('openai', [{ tool_calls: [{ ...call, extra_content }] }]);
    const { turn, losses } = await returned(setup, { stream });
    const { index: _, ...made } = call;
    expect(turn?.tool_calls).toEqual([{ ...made, extra_content }]);
    expect(losses).toBeNull();
  });

  test("stays the client's own where the client kept it, and its request goes through untouched", async () => {
    const setup = await setUp('deepseek', [{ reasoning_content: 'Look.' }, { tool_calls: [call] }]);
    const keep = { reasoning_content: 'Look.', x_own: 1 };
    const { turn } = await returned(setup, { stream, keep });
    expect(turn).toMatchObject(keep);
  });

  test('of a request without tools is not looked at', async () => {
    const setup = await setUp('deepseek', [{ reasoning_content: 'Look.' }, { tool_calls: [call] }]);
    expect((await returned(setup, { stream, offer: false })).turn).not.toHaveProperty('reasoning_content');
  });

  test('reaches the client in the bytes that the provider sent', async () => {
    const setup = await setUp('deepseek', [{ reasoning_content: 'Look.' }, { tool_calls: [call] }]);
    const { bytes } = await returned(setup, { stream });
    const direct = await fetch(`${setup.upstream.url}/`, {
      method: 'POST',
      body: JSON.stringify({ stream }),
    });
    expect(bytes).toBe(await direct.text());
  });
});
