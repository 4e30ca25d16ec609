import { describe, expect, test } from 'vitest';
import type { CallKey } from '../../../../core/sdk/call-key.ts';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { fetchSchema } from '../../../../core/settings/fetch.ts';
import type { Fetched, GuardedFetch } from '../../../../core/upstream/guarded/fetch.ts';
import {
  createFetchMedia,
  forgetMedia,
  type FetchMedia,
  type MediaRequirements,
} from '../../../../core/upstream/guarded/media.ts';

type Kind = MediaRequirements['kinds'][number];

const at = 'messages[0].content[1].image_url.url';
const latin = (text: string): Buffer => Buffer.from(text, 'latin1');
const png = Buffer.concat([latin('\x89PNG\r\n\x1a\n'), Buffer.alloc(40, 7)]);
const mp3 = latin('ID3 sound');
const films = {
  mp4: latin('\0\0\0\x18ftypisom\0\0\0\0isommp42'),
  '3gpp': latin('\0\0\0\x18ftyp3gp4\0\0\0\x003gp4mp42'),
  webm: latin('\x1aE\xdf\xa3 webm'),
  'x-matroska': latin('\x1aE\xdf\xa3 matroska'),
  ogg: Buffer.concat([latin('OggS'), Buffer.alloc(24), latin('\x80theora')]),
};
const sound = Buffer.concat([latin('OggS'), Buffer.alloc(24), latin('\x01vorbis')]);
const pdf = latin('%PDF-1.7');
const zip = latin('PK\x03\x04rest');

/** As much of a call as is needed; `beside` is another try of the same call, which ends by itself. */
function callOf() {
  const values = new Map<CallKey<unknown>, unknown>();
  const attempt = () => {
    const jobs = new Set<() => void>();
    let over = false;
    const call: Parameters<FetchMedia>[0] = {
      onEnd(job) {
        if (over) job();
        else jobs.add(job);
        return () => void jobs.delete(job);
      },
      get: <T>(key: CallKey<T>) => values.get(key) as T | undefined,
      set: (key, value) => void values.set(key, value),
    };
    const end = (): void => {
      over = true;
      for (const job of jobs) job();
    };
    return { call, end };
  };
  return { ...attempt(), beside: attempt };
}

const settings = fetchSchema.parse({ most: 3, total: 2000 });

/** Fetches what a server is said to give. */
async function fetchAs(kinds: readonly Kind[], bytes: Buffer, contentType?: string): Promise<string> {
  const fetch: GuardedFetch = (_call, _url, { accept }) => {
    accept(bytes.subarray(0, 4096), contentType);
    return Promise.resolve({ bytes, contentType });
  };
  const media = await createFetchMedia(settings, fetch)(callOf().call, 'https://a.test', { kinds, at });
  expect(media.bytes).toBe(bytes);
  return media.mimeType;
}
const refusal = (fetching: Promise<unknown>): Promise<GatewayError> =>
  fetching.then(
    () => Promise.reject(new Error('It was fetched.')),
    (error: unknown) => (error instanceof GatewayError ? error : Promise.reject(error as Error)),
  );

const unspecific = [
  undefined,
  'application/octet-stream',
  'binary/octet-stream',
  'application/binary',
  'application/ogg',
  'application/mp4',
];

describe('a medium', () => {
  test.each<[Kind, Buffer, string]>([
    ['image', png, 'image/png'],
    ['audio', mp3, 'audio/mpeg'],
    ['video', films.mp4, 'video/mp4'],
    ['file', pdf, 'application/pdf'],
    ['file', png, 'image/png'],
    ['file', latin('words'), 'text/plain'],
  ])('%s is what its bytes show (%#), where its server does not know', async (kind, bytes, shown) => {
    for (const contentType of unspecific)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await fetchAs([kind], bytes, contentType)).toBe(shown);
  });

  test.each(Object.entries(films))('in a container (%s) may be a sound or a film', async (name, bytes) => {
    for (const contentType of [undefined, 'audio/x', 'video/x', 'application/ogg'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await fetchAs(['audio'], bytes, contentType)).toBe(`audio/${name}`);
    expect(await fetchAs(['video'], bytes, 'video/x')).toBe(`video/${name}`);
    for (const contentType of ['image/png', 'text/html', 'application/json'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await refusal(fetchAs(['audio'], bytes, contentType));
    await refusal(fetchAs(['video'], bytes, 'audio/x'));
  });

  test('that is a sound may come from a server that calls sounds films, and no other may', async () => {
    expect(await fetchAs(['audio'], sound, 'video/ogg')).toBe('audio/ogg');
    expect(await fetchAs(['audio'], sound, 'audio/x')).toBe('audio/ogg');
    await refusal(fetchAs(['image'], png, 'video/mp4'));
    await refusal(fetchAs(['audio'], sound, 'image/png'));
    await refusal(fetchAs(['video'], sound, undefined));
    // No container: a film in it is no sound.
    await refusal(fetchAs(['audio'], latin('FLV\x01 film'), 'video/x-flv'));
    await refusal(fetchAs(['image'], latin('words'), 'image/png'));
  });
});

describe('a document', () => {
  test.each<[Buffer, string | undefined, string]>([
    [pdf, 'application/pdf', 'application/pdf'],
    [pdf, 'application/x-pdf', 'application/pdf'],
    [zip, 'application/vnd.ms-excel', 'application/vnd.ms-excel'],
    [zip, 'application/epub+zip', 'application/epub+zip'],
    [png, 'image/x-other', 'image/png'],
    [latin('a'), 'text/csv', 'text/csv'],
    [latin('{}'), 'application/json', 'application/json'],
    [latin('<a/>'), 'application/xml', 'application/xml'],
    [latin('a: b'), 'application/yaml', 'application/yaml'],
    [latin('<a/>'), 'application/vnd.a-b.c+xml', 'application/vnd.a-b.c+xml'],
    [Buffer.from('ü'), 'text/plain', 'text/plain'],
  ])('%# called %s is taken as %s', async (bytes, contentType, type) => {
    expect(await fetchAs(['file'], bytes, contentType)).toBe(type);
  });

  test.each<[Buffer, string | undefined]>([
    [pdf, 'application/pdfx'],
    [pdf, 'x-application/pdf'],
    [pdf, 'image/png'],
    [zip, undefined],
    [zip, 'application/zip'],
    [zip, 'application/epub+zipped'],
    [zip, 'text/vnd.a'],
    [zip, 'x-application/vnd.a'],
    [png, 'video/mp4'],
    [latin('a\0b'), 'text/plain'],
    [latin('a'), 'image/png'],
    [latin('a'), 'application/jsonp'],
    [latin('a'), 'application/a/json'],
    [latin('a'), 'my-application/json'],
    [latin('a'), 'not-text/plain'],
    [latin('a\xff'), undefined],
    [latin('a\xff'), 'application/json'],
  ])('%# called %s is refused', async (bytes, contentType) => {
    expect(await refusal(fetchAs(['file'], bytes, contentType))).toMatchObject({
      code: 'unsupported_content',
      param: at,
      message: `${at}: the file at this URL is not a document.`,
    });
  });

  test('is no text when its end is none', async () => {
    const bytes = Buffer.concat([Buffer.alloc(5000, 0x61), Buffer.from([0xff])]);
    expect((await refusal(fetchAs(['file'], bytes, 'text/plain'))).code).toBe('unsupported_content');
  });
});

test('of several kinds the first that fits is taken; a refusal names them all', async () => {
  expect(await fetchAs(['audio', 'video'], films.mp4)).toBe('audio/mp4');
  expect(await fetchAs(['video', 'audio'], films.mp4)).toBe('video/mp4');
  expect(await fetchAs(['image', 'file'], pdf)).toBe('application/pdf');
  expect((await refusal(fetchAs(['image', 'audio', 'video', 'file'], zip))).message).toBe(
    `${at}: the file at this URL is not an image or a sound or a video or a document.`,
  );
});

describe('several fetches of one call', () => {
  /** A server that answers when a test says so. */
  function held() {
    const fetches: {
      readonly url: string;
      readonly left: number;
      give(): void;
      fail(error: unknown): void;
    }[] = [];
    const fetch: GuardedFetch = (_call, url, { room }) => {
      const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
      fetches.push({
        url,
        left: room.left,
        give() {
          room.left -= png.length;
          resolve({ bytes: png, contentType: 'image/png' });
        },
        fail: reject,
      });
      return promise;
    };
    return { fetches, fetchMedia: createFetchMedia(settings, fetch) };
  }
  const image: MediaRequirements = { kinds: ['image'], at };
  const url = 'https://a.test/1';
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const givenUp = () => new GatewayError('client_closed_request', 'The client left.');

  test('for one file fetch it once, as long as they want the same of it', async () => {
    const { fetches, fetchMedia } = held();
    const { call } = callOf();
    const both = [fetchMedia(call, url, image), fetchMedia(call, url, image)];
    const other = fetchMedia(call, url, { kinds: ['image', 'file'], at });
    expect(fetches).toHaveLength(2);
    for (const { give } of fetches) give();
    const [first, second] = await Promise.all(both);
    expect(first).toBe(second);
    expect((await other).mimeType).toBe('image/png');
    expect(await fetchMedia(call, url, image)).toBe(first);
    expect(fetches).toHaveLength(2);
  });

  test('go on when the try that began the fetch is given up: one of them fetches for all', async () => {
    const { fetches, fetchMedia } = held();
    const { call, beside } = callOf();
    const first = refusal(fetchMedia(call, url, image));
    const others = [fetchMedia(beside().call, url, image), fetchMedia(beside().call, url, image)];
    fetches[0]?.fail(givenUp());
    expect((await first).code).toBe('client_closed_request');
    await settled();
    expect(fetches).toHaveLength(2);
    fetches[1]?.give();
    const [second, third] = await Promise.all(others);
    expect(second).toBe(third);
    expect(fetches).toHaveLength(2);
  });

  test('end with the file when it cannot be had, and when they have ended themselves', async () => {
    const { fetches, fetchMedia } = held();
    const { call, beside } = callOf();
    const gone = new GatewayError('invalid_value', 'It is not there.');
    const both = [refusal(fetchMedia(call, url, image)), refusal(fetchMedia(beside().call, url, image))];
    fetches[0]?.fail(gone);
    expect(await Promise.all(both)).toEqual([gone, gone]);
    expect(fetches).toHaveLength(1);

    const other = beside();
    const again = [refusal(fetchMedia(call, url, image)), refusal(fetchMedia(other.call, url, image))];
    other.end();
    fetches[1]?.fail(givenUp());
    for (const error of await Promise.all(again)) expect(error.code).toBe('client_closed_request');
    expect(fetches).toHaveLength(2);
  });

  test('may try again after a failure', async () => {
    const { fetches, fetchMedia } = held();
    const { call } = callOf();
    const first = refusal(fetchMedia(call, url, image));
    fetches[0]?.fail(new GatewayError('invalid_value', 'It is not there.'));
    await first;
    const second = fetchMedia(call, url, image);
    fetches[1]?.give();
    expect((await second).bytes).toBe(png);
  });

  test('are so many and no more, also when what was fetched is let go of; its room is free again', async () => {
    const { fetches, fetchMedia } = held();
    const { call } = callOf();
    const one = fetchMedia(call, url, image);
    fetches[0]?.give();
    await one;
    const two = fetchMedia(call, `${url}2`, image);
    expect(fetches[1]?.left).toBe(2000 - png.length);
    fetches[1]?.give();
    await two;
    forgetMedia(call);
    const three = fetchMedia(call, url, image);
    expect(fetches[2]?.left).toBe(2000);
    fetches[2]?.give();
    await three;
    expect(await refusal(fetchMedia(call, `${url}3`, image))).toMatchObject({
      code: 'invalid_value',
      param: at,
      message: `${at}: a request can have at most 3 files by URL.`,
    });
    expect(fetches).toHaveLength(3);
  });

  test('of none there is nothing to let go of', () => {
    const { call } = callOf();
    expect(() => forgetMedia(call)).not.toThrow();
  });
});

test('where the operator switched it off nobody is asked', async () => {
  const fetch: GuardedFetch = () => Promise.reject(new Error('asked'));
  const fetchMedia = createFetchMedia(fetchSchema.parse({ enabled: false }), fetch);
  expect(await refusal(fetchMedia(callOf().call, 'https://a.test', { kinds: ['image'], at }))).toMatchObject({
    code: 'unsupported_content',
    param: at,
  });
});
