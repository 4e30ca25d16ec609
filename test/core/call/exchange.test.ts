import { describe, expect, test, vi } from 'vitest';
import { BudgetShare } from '../../../core/front/byte-budget.ts';
import { understandJson } from '../../../core/front/json-body.ts';
import { chatOf, type Call } from '../../../core/sdk/call.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { testCall } from '../../support/call.ts';

const broken = new GatewayError('upstream_error', 'The provider broke off.');
const late = new GatewayError('upstream_timeout', 'The provider took too long.');
const left = new GatewayError('client_closed_request', 'The client has gone.');

describe('the failure of a call', () => {
  test('ends the reply with the first failure, whatever comes behind it', () => {
    const { call, exchange } = testCall({ model: 'x' });
    const writer = { fail: vi.fn<(error: GatewayError) => void>() };
    exchange.writer = writer;
    call.fail(broken);
    call.fail(late);
    expect(writer.fail.mock.calls).toEqual([[broken]]);
    expect([call.failure, call.hasEnded]).toEqual([broken, false]);
  });

  test('ends a call that has no reply to write yet, and frees what waits for it', () => {
    const { call } = testCall({ model: 'x' });
    const job = vi.fn<() => void>();
    call.onEnd(job);
    call.fail(broken);
    expect(job).toHaveBeenCalledOnce();
    expect([call.failure, call.hasEnded, call.signal.aborted]).toEqual([broken, true, true]);
  });

  test('changes nothing of a call that has ended', () => {
    const { call, exchange } = testCall({ model: 'x' });
    exchange.end();
    call.fail(broken);
    exchange.noteFailure(late);
    expect(call.failure).toBeUndefined();
  });

  test('is kept for the records where the writer found it: the first one, and none where the client left', () => {
    const { call, exchange } = testCall({ model: 'x' });
    exchange.noteFailure(left);
    expect(call.failure).toBeUndefined();
    exchange.noteFailure(broken);
    exchange.noteFailure(late);
    expect(call.failure).toBe(broken);
  });
});

describe('memory that is held for a call', () => {
  const holding = () => ({ letGo: vi.fn<() => void>(), share: vi.fn<() => never>() });

  test('is released once, when the call ends', () => {
    const { exchange } = testCall({ model: 'x' });
    const held = holding();
    exchange.hold(held);
    expect(held.letGo).not.toHaveBeenCalled();
    exchange.end();
    exchange.end();
    expect(held.letGo).toHaveBeenCalledOnce();
  });

  test('is released at once when the client left while the body was read', () => {
    const { exchange } = testCall({ model: 'x' });
    const held = holding();
    exchange.end();
    exchange.hold(held);
    expect(held.letGo).toHaveBeenCalledOnce();
  });

  test('is shared with a call that outlasts it', () => {
    const { call, exchange } = testCall({ model: 'x' });
    const [own, shared] = [holding(), holding()];
    exchange.hold({ letGo: own.letGo, share: () => shared });
    const { end } = call.detached();
    exchange.end();
    expect([own.letGo.mock.calls.length, shared.letGo.mock.calls.length]).toEqual([1, 0]);
    end();
    expect(shared.letGo).toHaveBeenCalledOnce();
  });
});

describe('an attempt of a call', () => {
  test('ends alone: the call goes on', () => {
    const { call } = testCall({ model: 'x' });
    const { call: attempt, end } = call.with({ model: 'y' }).attempt();
    const job = vi.fn<() => void>();
    attempt.onEnd(job);
    end();
    expect(job).toHaveBeenCalledOnce();
    expect([attempt.model, attempt.hasEnded, attempt.signal.aborted]).toEqual(['y', true, true]);
    expect([call.hasEnded, call.signal.aborted]).toEqual([false, false]);
  });

  test('ends with the call', () => {
    const { call, exchange } = testCall({ model: 'x' });
    const { call: attempt, end } = call.attempt();
    const job = vi.fn<() => void>();
    attempt.with({ model: 'y' }).onEnd(job);
    exchange.end();
    end();
    expect(job).toHaveBeenCalledOnce();
    expect(attempt.signal.aborted).toBe(true);
  });
});

/** A chat with one long text, read as the front end reads a request. */
async function longCall(text: string): Promise<Call> {
  const { call, exchange } = await makeCall();
  const body = { model: 'm', stream: true, temperature: 0.5, messages: [{ role: 'user', content: text }] };
  const bytes = Buffer.from(JSON.stringify(body));
  understandJson(exchange, bytes, {
    limits: { body: 1e6, depth: 100, values: 1000, members: 1000 },
    held: new BudgetShare({ most: 1e6, take: () => {}, giveBack: () => {} }),
  });
  return call;
}

/** The text of the first message. */
function firstText(request: Call['request']): string | undefined {
  const [message] = 'messages' in request ? request.messages : [];
  const [block] = message?.content ?? [];
  return block?.type === 'text' ? block.text : undefined;
}

describe('a long request', () => {
  const text = 'long words '.repeat(4000);

  test('is known without its long texts until somebody reads them', async () => {
    const call = await longCall(text);
    expect(firstText(call.outline)).not.toBe(text);
    expect(call.omittedBytes).toBe(text.length);
    expect(chatOf(call).settings.temperature).toBe(0.5);
    expect(firstText(call.request)).toBe(text);
    expect([firstText(call.outline), call.omittedBytes]).toEqual([text, 0]);
    expect([call.model, call.stream, call.framing]).toEqual(['m', true, 'sse']);
  });

  test('is known alike after it was sent, when its outline has been released', async () => {
    const call = await longCall(text);
    const [before, body] = [call.outline, call.bodyOutline];
    expect(call.outline).toBe(before);
    expect(call.bodyOutline).toBe(body);
    call.sent();
    expect(call.outline).toEqual(before);
    expect(call.outline).not.toBe(before);
    expect(call.bodyOutline).toEqual(body);
  });

  test('is known by what a plugin wrote in its place', async () => {
    const call = await longCall(text);
    const renamed = call.with({ model: 'y' });
    expect([renamed.outline.model, renamed.omittedBytes]).toEqual(['y', text.length]);
    const body = { model: 'other', messages: [{ role: 'user', content: 'short' }] };
    const view = call.with({ body });
    expect(view.bodyOutline).toBe(body);
    expect([firstText(view.outline), view.omittedBytes]).toEqual(['short', 0]);
    const history = [{ role: 'user', content: [{ type: 'text', text: 'new' }] }] as const;
    const edited = call.with({ messages: history });
    expect([firstText(edited.outline), edited.omittedBytes]).toEqual(['new', 0]);
  });

  test('gives the words of a text to a plugin that reads it, and leaves the others unread', async () => {
    const call = await longCall(text);
    const { request, read } = call.texts();
    expect(read(firstText(request) ?? '')).toBe(text);
    expect(read('short')).toBe('short');
    expect(call.omittedBytes).toBe(text.length);
  });

  test('is read whole where the client wrote what could stand for one of its texts', async () => {
    const confusing = `\f100000${text}`;
    const call = await longCall(confusing);
    const { request, read } = call.texts();
    expect(read(firstText(request) ?? '')).toBe(confusing);
  });

  test('gives a sample of a text that is the same whether the text was read before', async () => {
    const call = await longCall(text);
    const sample = call.sampleText(firstText(call.outline) ?? '', 4);
    expect(sample).toBe(`${text.length}longrds `);
    expect(call.sampleText(firstText(call.request) ?? '', 4)).toBe(sample);
  });

  test('is expected to have no fewer tokens before its texts are read than after', async () => {
    const call = await longCall(text);
    const before = call.estimatedInput;
    expect(firstText(call.request)).toBe(text);
    const after = call.estimatedInput;
    expect(after).toBeGreaterThan(text.length / 5);
    expect(before).toBeGreaterThanOrEqual(after);
    expect(before).toBeLessThan(after + 10);
  });
});
