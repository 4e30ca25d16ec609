import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import messages from '../../../core/formats/messages/index.ts';
import { writeSse } from '../../../core/formats/_shared/sse.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { ownTokens } from '../../../core/model/usage.ts';
import { decode, encoder, fixture, fixtures, fold, framesOf } from './support.ts';

/** The vendor's client, for which every answer is this one. */
function clientOf(body: string, init: ResponseInit): Anthropic {
  return new Anthropic({
    apiKey: 'k',
    maxRetries: 0,
    fetch: () => Promise.resolve(new Response(body, init)),
  });
}

const stream = (events: readonly GatewayEvent[]) =>
  clientOf(framesOf(events).map(writeSse).join(''), {
    headers: { 'content-type': 'text/event-stream' },
  }).messages.stream({
    model: 'm',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'Hi' }],
  });

describe('the official SDK', () => {
  // Kinds of blocks that the SDK does not know are not its concern.
  it.each(
    fixtures('streams', '.sse').filter((name) => name !== 'of-tomorrow' && name !== 'max-tokens-in-a-call'),
  )('reads stream %s to its end', async (name) => {
    const events = decode(fixture('streams', `${name}.sse`));
    const message = await stream(events).finalMessage();
    const { content, stop_reason, id } = fold(framesOf(events));
    expect(
      JSON.parse(
        JSON.stringify({ content: message.content, stop_reason: message.stop_reason, id: message.id }),
      ),
    ).toEqual({ content, stop_reason, id });
    // The figures at the top, which is all that the SDK adds up, leave the tokens of other models out.
    const usage = events.findLast((event) => event.type === 'usage')?.usage;
    expect(message.usage.output_tokens).toBe(usage && ownTokens(usage).output);
  });

  it('reads a reply of another format', async () => {
    const message = await stream([
      { type: 'head', id: 'chatcmpl-1', model: 'x' },
      { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: 'f' },
      { type: 'tool-start', block: 1, choice: 0, id: 'call_2', name: 'g' },
      { type: 'tool-delta', block: 1, choice: 0, input: '{"b":2}' },
      { type: 'tool-delta', block: 0, choice: 0, input: '{"a":1}' },
      { type: 'finish', choice: 0, reason: 'tool-calls' },
      { type: 'usage', usage: { input: 5, output: 3, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
    ]).finalMessage();
    expect(message.content).toMatchObject([
      { name: 'f', input: { a: 1 } },
      { name: 'g', input: { b: 2 } },
    ]);
    expect([message.usage.input_tokens, message.usage.output_tokens]).toEqual([5, 3]);
  });

  it('raises an error in the middle of a stream', async () => {
    const made = encoder();
    const frames = [
      ...made.event({ type: 'head', id: '', model: 'x' }),
      ...made.keepAlive(),
      ...made.error(new GatewayError('server_is_overloaded', 'Busy.')),
    ];
    const broken = clientOf(frames.map(writeSse).join(''), {
      headers: { 'content-type': 'text/event-stream' },
    });
    const running = broken.messages.stream({
      model: 'm',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    await expect(running.finalMessage()).rejects.toMatchObject({ type: 'overloaded_error' });
  });

  it('raises an error reply with its type and request id', async () => {
    const { status, headers, body } = messages.errorReply(
      new GatewayError('model_not_allowed', 'Not yours.'),
      'req_9',
    );
    const refused = clientOf(JSON.stringify(body), {
      status,
      headers: { ...headers, 'content-type': 'application/json' },
    });
    await expect(
      refused.messages.create({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }),
    ).rejects.toMatchObject({ status: 403, type: 'permission_error', requestID: 'req_9' });
  });
});
