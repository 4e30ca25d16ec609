import { EMPTY } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { caller, type ApiKey, type JsonObject } from 'sluice';
import type { Call } from 'sluice/internal';
import type { Channel } from '../../../core/sdk/call.ts';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import {
  pinnedCall,
  accountOfReferences,
  refers,
  type Finding,
} from '../../../plugins/provider-objects/pin.ts';
import type { Reference } from '../../../plugins/provider-objects/references.ts';
import { testCall } from '../../support/call.ts';

const keysOf = (id: string) => [
  { id: `${id}-1`, index: 0 },
  { id: `${id}-2`, index: 1 },
];
const channelOf = (id: string, keeps: Channel['keeps'] = { 'chat-completions': ['files'] }): Channel =>
  ({ id, keys: keysOf(id), keeps }) as unknown as Channel;
const a = channelOf('a');
const b = channelOf('b');
const stranger: Channel = { ...channelOf('stranger'), keeps: undefined } as unknown as Channel;

/** `owner id`: where it is kept. */
const kept: Readonly<Record<string, readonly [channel: string, key: string]>> = {
  'me file-1': ['a', 'a-1'],
  'me file-2': ['a', 'a-1'],
  'me file-other-key': ['a', 'a-2'],
  'me file-b': ['b', 'b-1'],
  'them file-theirs': ['a', 'a-1'],
  ' file-nobodys': ['b', 'b-2'],
};

function finding(candidates: readonly Channel[] = [a], foreign = false): Finding {
  return {
    foreign,
    store: {
      find: (owner: string, kind: string, id: string) => {
        const account = kind === 'chat-completions/files' ? kept[`${owner} ${id}`] : undefined;
        return Promise.resolve(
          account && ({ owner, kind, id, channel: account[0], key: account[1] } as unknown as ProviderObject),
        );
      },
      isOwned: (kind: string, id: string) =>
        Promise.resolve(
          kind === 'chat-completions/files' && Object.keys(kept).some((name) => name.endsWith(` ${id}`)),
        ),
    },
    catalog: {
      channels: [a, b, stranger],
      candidates: () => candidates.map((channel) => ({ channel, rank: 0, targets: [] })),
    },
  } as unknown as Finding;
}

const reference = (id: string, more: Partial<Reference> = {}): Reference => ({
  kind: 'chat-completions/files',
  id,
  path: `path.of.${id}`,
  ...more,
});

function callOf(owner: string | undefined = 'me', body: JsonObject = {}): Call {
  const { call, exchange } = testCall({ format: 'chat-completions' });
  exchange.understand(Buffer.from(JSON.stringify(body)), { model: 'm', stream: false, ...body });
  if (owner !== undefined) call.set(caller, { id: owner } as ApiKey);
  return call;
}

describe('where the objects are that a request refers to', () => {
  const placed = async (ids: readonly (string | Reference)[], given = finding(), owner = 'me') => {
    const references = ids.map((one) => (typeof one === 'string' ? reference(one) : one));
    const account = await accountOfReferences(callOf(owner), references, given);
    return account && `${account.channel.id} ${account.key.id}`;
  };

  test('is where all of them are', async () => {
    expect(await placed([])).toBeUndefined();
    expect(await placed(['file-1'])).toBe('a a-1');
    expect(await placed(['file-1', 'file-2'])).toBe('a a-1');
    expect(await placed(['file-other-key'])).toBe('a a-2');
  });

  test('is nowhere where they are kept by several accounts', async () => {
    for (const other of ['file-b', 'file-other-key'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(placed(['file-1', other])).rejects.toMatchObject({
        code: 'invalid_value',
        status: 400,
        param: `path.of.${other}`,
      });
  });

  test('is 404 for what is not there, and for what another key has, in the same words', async () => {
    for (const id of ['file-unknown', 'file-theirs', 'file-nobodys'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(placed(['file-1', id])).rejects.toMatchObject({
        code: 'not_found',
        message: `There is no ${id} among the files of this API key.`,
        param: `path.of.${id}`,
      });
  });

  test('leaves out what nobody has here, where that may go on as it is', async () => {
    expect(await placed([reference('cfile-1', { soft: true }), 'file-1'])).toBe('a a-1');
    expect(await placed(['file-unknown'], finding([a], true))).toBeUndefined();
    expect(
      await accountOfReferences(callOf(), [reference('x')], finding(), (kind) => kind.endsWith('/files')),
    ).toBeUndefined();
    await expect(accountOfReferences(callOf(), [reference('x')], finding(), () => false)).rejects.toThrow(
      'There is no x',
    );
  });

  test('never leaves out what another key has', async () => {
    for (const given of [finding(), finding([a], true)])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(placed([reference('file-theirs', { soft: true })], given)).rejects.toMatchObject({
        code: 'not_found',
      });
    await expect(
      accountOfReferences(callOf(), [reference('file-theirs')], finding(), () => true),
    ).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is asked for in the name of nobody where no key is asked', async () => {
    const { call } = testCall();
    const account = await accountOfReferences(call, [reference('file-nobodys')], finding());
    expect([account?.channel.id, account?.key.id]).toEqual(['b', 'b-2']);
  });
});

describe('a call that refers to objects', () => {
  const pinned = async (call: Call, given = finding()): Promise<Call> => {
    let sent: Call | undefined;
    await pinnedCall(
      call,
      (one) => {
        sent = one as Call;
        return Promise.resolve(EMPTY);
      },
      given,
    );
    if (sent === undefined) throw new Error('It was not sent.');
    return sent;
  };

  test('goes to the channel and the key that keep them, and to no other', async () => {
    const call = callOf('me', { messages: [{ content: [{ file: { file_id: 'file-other-key' } }] }] });
    const sent = await pinned(call);
    expect(sent.edits.affinity).toEqual({ channel: 'a', key: 'a-2', only: true });
    // Written anew, so that the provider reads what was read here.
    expect(sent.edits.body).toMatchObject({
      messages: [{ content: [{ file: { file_id: 'file-other-key' } }] }],
    });
  });

  test('goes on as it is where it refers to none', async () => {
    const call = callOf('me', { messages: [] });
    expect(await pinned(call)).toBe(call);
  });

  test('is refused where the model is not served there', async () => {
    const call = callOf('me', { file_id: 'file-b' });
    await expect(pinned(call, finding([a]))).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'model',
      message: 'The model "m" is not served where file-b is kept.',
    });
    expect((await pinned(call, finding([a, b]))).edits.affinity).toMatchObject({ channel: 'b' });
  });

  test('goes on as it is where no provider of its model has such objects: its format says what it cannot carry', async () => {
    const call = callOf('me', { file_id: 'file-unknown' });
    expect(await pinned(call, finding([stranger]))).toBe(call);
    const others = channelOf('others', { messages: ['files'], 'chat-completions': ['batches'] });
    expect(await pinned(call, finding([others]))).toBe(call);
    await expect(pinned(call, finding([stranger, a]))).rejects.toMatchObject({ code: 'not_found' });
    await expect(pinned(callOf('me', { file_id: 'file-theirs' }), finding([stranger]))).rejects.toMatchObject(
      {
        code: 'not_found',
      },
    );
  });
});

describe('a call that may refer to something', () => {
  test('is found by a look at the letters of its body', () => {
    expect(refers(callOf('me', { messages: [{ file_id: 'a' }] }))).toBe(true);
    expect(refers(callOf('me', { messages: [{ content: 'a' }] }))).toBe(false);
  });

  test('is one whose body is a form, or was written here', () => {
    const { call, exchange } = testCall({ format: 'chat-completions' });
    exchange.understand(Buffer.alloc(0), { model: 'm', stream: false });
    expect(refers(call)).toBe(true);
    const edited = callOf('me', {});
    expect(refers(edited)).toBe(false);
    expect(refers(edited.with({ body: {} }))).toBe(true);
  });

  test.each(['state', 'list-models', 'realtime', 'get-video', 'delete-video'] as const)(
    'is none of %s',
    (operation) => {
      const { call, exchange } = testCall({ format: 'chat-completions', operation });
      exchange.understand(Buffer.from('{"file_id":"a"}'), { model: 'm', stream: false });
      expect(refers(call)).toBe(false);
    },
  );

  test('is none of a format without objects', () => {
    const { call, exchange } = testCall({ format: 'converse' });
    exchange.understand(Buffer.from('{"file_id":"a"}'), { model: 'm', stream: false });
    expect(refers(call)).toBe(false);
  });
});
