import { EMPTY } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import { createDirectCalls } from '../../../core/call/direct-call.ts';
import { createProviderCalls } from '../../../core/call/provider-call.ts';
import { createTaskCalls } from '../../../core/call/task-call.ts';
import type { VideoTaskRequest } from '../../../core/model/video.ts';
import { chatOf, type Channel, type Target } from '../../../core/sdk/call.ts';
import type { Next } from '../../../core/sdk/define.ts';
import type { Codecs } from '../../../core/sdk/format.ts';
import { allFormats } from '../../../core/sdk/testing/formats.ts';

const formats = await allFormats();
const named = (name: string) => formats.find((format) => format.name === name);
const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };

/** A key of a channel. Only what these calls look at is there. */
function targetOf(channel: Partial<Channel> = {}): Target {
  const key = { id: 'key-1', index: 0 };
  return { channel: { id: 'c', codecs: {}, ...channel } as Channel, key, model: 'served-model', traits: {} };
}

function translate() {
  return vi.fn<Next>(async () => EMPTY);
}

describe('a chat of the gateway’s own', () => {
  test('goes to its target with the operator’s instructions, and its reply comes as events', async () => {
    const next = translate();
    const systemPrompt = { text: 'Be kind.', place: 'before' } as const;
    const target = targetOf({ systemPrompt });
    const direct = createDirectCalls(named, next)('chat-completions', body, target);
    expect(direct.call).toMatchObject({ operation: 'chat', model: 'm', patchable: false });
    expect(direct.call.id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(direct.call.wire).toMatchObject({ method: 'POST', path: '/v1/chat/completions', body });
    expect(await direct.send()).toBe(EMPTY);
    const [sent] = next.mock.calls[0] ?? [];
    expect(sent?.target).toBe(target);
    expect(chatOf(sent ?? direct.call).system).toMatchObject([{ content: [{ text: 'Be kind.' }] }]);
  });

  test('is refused where its body is wrong, and in a format that has no chats', () => {
    const create = createDirectCalls(named, translate());
    expect(() => create('chat-completions', { model: 'm' }, targetOf())).toThrow('messages');
    for (const name of ['embeddings', 'unheard-of'])
      expect(() => create(name, body, targetOf())).toThrow(`No format "${name}" supports chat.`);
  });

  test('releases everything when it is ended', () => {
    const { call, end } = createDirectCalls(named, translate())('chat-completions', body, targetOf());
    end();
    expect(call.signal.aborted).toBe(true);
  });
});

describe('a call about what a provider keeps', () => {
  test('knows its target and the model there', () => {
    const target = targetOf();
    const { call, end } = createProviderCalls(named)('messages', target);
    expect(call).toMatchObject({ operation: 'state', model: 'served-model', body: {} });
    expect(call.target).toBe(target);
    expect(call.format.name).toBe('messages');
    expect(call.id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(call.hasEnded).toBe(false);
    end();
    expect(call.hasEnded).toBe(true);
  });

  test('is refused in a format that has no chats', () => {
    const create = createProviderCalls(named);
    for (const name of ['embeddings', 'unheard-of'])
      expect(() => create(name, targetOf())).toThrow(`No format "${name}" supports chat.`);
  });
});

describe('a question about a provider’s task', () => {
  const request = (format: string): VideoTaskRequest => ({
    operation: 'get-video',
    format,
    model: 'sora-2',
    id: 'video_1',
    images: 0,
  });

  test('goes to its target as it is, in the format in which the task was made', async () => {
    const next = translate();
    const target = targetOf();
    const operation = request('videos');
    const task = createTaskCalls(named, next)(operation, target);
    expect(task.call).toMatchObject({ operation: 'get-video', model: 'sora-2', patchable: false });
    expect(await task.send()).toBe(EMPTY);
    const [sent] = next.mock.calls[0] ?? [];
    expect(sent?.target).toBe(target);
    expect(sent?.request).toBe(operation);
    task.end();
    expect(task.call.hasEnded).toBe(true);
  });

  test('goes in the words of a channel that has its own', () => {
    const own = { format: 'own-videos', operation: 'get-video' } as Codecs['get-video'];
    const channel = { codecs: { 'get-video': own } as Codecs };
    const { call } = createTaskCalls(named, translate())(request('own-videos'), targetOf(channel));
    expect(call.codec).toBe(own);
  });

  test('is refused where the format cannot ask for it', () => {
    const create = createTaskCalls(named, translate());
    for (const name of ['chat-completions', 'unheard-of'])
      expect(() => create(request(name), targetOf())).toThrow(`The format "${name}" has no get-video.`);
  });
});
