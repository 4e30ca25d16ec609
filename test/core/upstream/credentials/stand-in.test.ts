import { NEVER } from 'rxjs';
import { describe, expect, test } from 'vitest';
import type { Call } from '../../../../core/sdk/call.ts';
import type { ChannelTools } from '../../../../core/sdk/define.ts';
import type { ClientCredential } from '../../../../core/sdk/client-credential.ts';
import { fillingIn, StandIn } from '../../../../core/upstream/credentials/stand-in.ts';

const key: ClientCredential = { kind: 'key', value: 'real-key' };
const token: ClientCredential = { kind: 'token', value: 'real-token' };

describe('the place of a key', () => {
  const standIn = new StandIn();
  const request = {
    url: `https://p/v1?key=${standIn.key}&a=1&pair=x-${standIn.key}-${standIn.key}`,
    headers: {
      'x-api-key': standIn.key,
      authorization: `Bearer ${standIn.key}/${standIn.key}`,
      accept: 'a/b',
    },
    body: 'as it is',
  };

  test('gets the credential in every header and parameter that shows it', () => {
    expect(standIn.filled(request, key)).toEqual({
      url: 'https://p/v1?key=real-key&a=1&pair=x-real-key-real-key',
      headers: { 'x-api-key': 'real-key', authorization: 'Bearer real-key/real-key', accept: 'a/b' },
      body: 'as it is',
    });
  });

  test('stays empty for a token, which is shown as a bearer', () => {
    expect(standIn.filled(request, token)).toEqual({
      url: 'https://p/v1?a=1',
      headers: { authorization: 'Bearer real-token', accept: 'a/b' },
      body: 'as it is',
    });
  });

  test('stays empty where there is nothing', () => {
    expect(standIn.filled(request, undefined)).toEqual({
      url: 'https://p/v1?a=1',
      headers: { accept: 'a/b' },
      body: 'as it is',
    });
  });

  test('is nowhere in an address that does not show it: the address stays as it is spelled', () => {
    const url = 'https://p/v1?q=a b&empty';
    expect(standIn.filled({ url, headers: {} }, key).url).toBe(url);
  });

  test('is another for each channel', () => {
    expect(new StandIn().key).not.toBe(standIn.key);
    expect(new StandIn().filled(request, key)).toEqual(request);
  });
});

describe('the tools of a channel whose key comes later', () => {
  const standIn = new StandIn();
  const seen: { readonly how: string; readonly url: string; readonly headers: object }[] = [];
  const tools = {
    keys: [standIn.key],
    http: {
      send: (_call: Call, request: { url: string; headers: object }) => {
        seen.push({ how: 'send', ...request });
        return Promise.resolve();
      },
      read: (request: { url: string; headers: object }) => {
        seen.push({ how: 'read', ...request });
        return Promise.resolve(Buffer.from('read'));
      },
    },
    sockets: {
      connect: (_call: Call, request: { url: string; headers: object }) => {
        seen.push({ how: 'connect', ...request });
        return Promise.resolve(NEVER);
      },
    },
  } as unknown as ChannelTools;
  const call = {} as Call;
  const request = { url: 'https://p/v1', headers: { 'x-api-key': standIn.key } };

  test('show what is found for the call, by every way to the provider', async () => {
    const received: unknown[] = [];
    const filled = fillingIn(tools, standIn, (about) => {
      received.push(about);
      return key;
    });
    await filled.http.send(call, request);
    await filled.sockets.connect(call, request);
    await filled.http.read(request);
    expect(received).toEqual([call, call, undefined]);
    const shown = { url: 'https://p/v1', headers: { 'x-api-key': 'real-key' } };
    expect(seen).toEqual([
      { how: 'send', ...shown },
      { how: 'connect', ...shown },
      { how: 'read', ...shown },
    ]);
  });

  test('reject where nothing is found, and ask nobody', async () => {
    seen.length = 0;
    const filled = fillingIn(tools, standIn, () => {
      throw new Error('There is none.');
    });
    await expect(filled.sockets.connect(call, request)).rejects.toThrow('There is none.');
    await expect(filled.http.read(request)).rejects.toThrow('There is none.');
    expect(() => filled.http.send(call, request)).toThrow('There is none.');
    expect(seen).toEqual([]);
  });

  test('send the place of the key to nobody who would give something else for it', async () => {
    seen.length = 0;
    const filled = fillingIn(tools, standIn, () => key);
    await expect(filled.http.read({ ...request, body: `apikey=${standIn.key}` })).rejects.toThrow(
      'This kind of channel exchanges its key for a token. Set its option "key".',
    );
    expect(seen).toEqual([]);
    expect(await filled.http.read({ ...request, body: 'apikey=of-somebody' })).toEqual(Buffer.from('read'));
  });
});
