import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { of, type Observable } from 'rxjs';
import { addReplyHeaders, GatewayError, isObject, type GatewayEvent, type JsonObject } from 'sluice';
import type { Call } from 'sluice/internal';
import type { RequestBody } from './core-types.ts';
import { keep, noObject, type ObjectServices } from './services.ts';
import { sendRequest, jsonOf } from './send-request.ts';
import { collectionOf, isId } from './collections.ts';
import { bodyOf, knownOf, linesOf, madeAnyway, withoutDropping } from './create.ts';
import type { BegunLines } from './known-lines.ts';
import type { RequestLines } from './request-lines.ts';
import { ownedObject } from './endpoints.ts';
import { passedOn } from './passed.ts';
import { ownerOf } from './owner.ts';
import { selectAccount, accountOf } from './account.ts';
import { originOf } from './shown.ts';
import { refuseBudgeted } from './unknown-cost.ts';

/** An upload that has begun: at which provider, and by what it is known there. */
interface UploadSession {
  readonly owner: string;
  readonly channel: string;
  readonly key: string;
  /** Path at the provider: of files, or of a file search store. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Number of bytes uploaded so far, and the state of reading their lines; no lines where that state is unknown. */
  readonly offset: number;
  readonly lines?: BegunLines;
  /** Reason why the lines are unknown. */
  readonly reason?: string;
}

/** Providers forget an upload that does not go on after some days. Milliseconds. */
const sessionLife = 7 * 86_400_000;

const words = 'x-goog-upload-';
/** Upload headers that clients send, and those that they receive. */
const requestHeaders = [
  'protocol',
  'command',
  'offset',
  'header-content-length',
  'header-content-type',
  'file-name',
];
const responseHeaders = ['status', 'chunk-granularity', 'size-received'];

const collection = collectionOf('generate-content', 'files');
const stores = collectionOf('generate-content', 'fileSearchStores');
const format = 'generate-content';

/**
 * Adds the paths by which files of generateContent are uploaded, also into a file search store, and downloaded: an upload begins with a
 * description of the file, is given an address, and takes the bytes there in one or more requests.
 */
export function addResumable(services: ObjectServices): void {
  const uploads = new Uploads(services);
  for (const version of ['v1beta', 'v1']) {
    services.tools.endpoint({
      method: 'POST',
      path: `/upload/${version}/files`,
      format,
      readsBody: true,
      handle: (call: Call) => {
        const id = call.wire.query.get('upload_id');
        return id === null ? uploads.begin(call, version) : uploads.goOn(call, id);
      },
    });
    services.tools.endpoint({
      method: 'POST',
      path: `/upload/${version}/${stores.name}/:store\\:uploadToFileSearchStore`,
      format,
      readsBody: true,
      handle: (call: Call, { store = '' }) => {
        const id = call.wire.query.get('upload_id');
        if (id !== null) return uploads.goOn(call, id);
        if (!isId(store)) throw noObject(stores, store);
        return uploads.begin(call, version, store);
      },
    });
    for (const path of [`/${version}/files/:id\\:download`, `/download/${version}/files/:id\\:download`])
      services.tools.endpoint({
        method: 'GET',
        path,
        format,
        readsBody: true,
        handle: async (call: Call, { id = '' }) => {
          if (!isId(id)) throw noObject(collection, id);
          const object = await ownedObject(call, collection, id, services);
          const answer = await sendRequest(call, accountOf(object, services.finding.catalog), format, {
            method: 'GET',
            path: `/files/${id}:download`,
            query: { alt: 'media' },
          });
          return passedOn(call, answer);
        },
      });
  }
}

/** Uploads that begin and go on. */
class Uploads {
  readonly #services: ObjectServices;
  readonly #sessions: ReturnType<typeof sessionsOf>;

  constructor(services: ObjectServices) {
    this.#services = services;
    this.#sessions = sessionsOf(services);
  }

  /** Begins an upload. `store`: the id of the caller's file search store into which the file goes. */
  async begin(call: Call, version: string, store?: string): Promise<Observable<GatewayEvent>> {
    // The provider charges for indexing a file, whose length is unknown.
    if (store !== undefined) refuseBudgeted(call);
    const { headers } = call.wire;
    if (headers[`${words}protocol`] !== 'resumable' || headers[`${words}command`] !== 'start')
      throw new GatewayError(
        'invalid_request',
        'An upload begins with X-Goog-Upload-Protocol: resumable and X-Goog-Upload-Command: start.',
      );
    const size = Number(headers[`${words}header-content-length`] ?? 0);
    if (size > this.#services.fileSize)
      throw new GatewayError(
        'request_too_large',
        `The file is larger than ${this.#services.fileSize} bytes.`,
      );
    const body = await bodyOf(call).json();
    const { catalog } = this.#services.finding;
    const account =
      store === undefined
        ? selectAccount(call, collection, catalog, {})
        : accountOf(await ownedObject(call, stores, store, this.#services), catalog);
    const path = store === undefined ? '/files' : `/${stores.name}/${store}:uploadToFileSearchStore`;
    const answer = await sendRequest(call, account, format, {
      method: 'POST',
      path,
      service: 'upload',
      headers: wordsOf(call),
      body: JSON.stringify(body),
    });
    const address = answer.headers[`${words}url`];
    await jsonOf(answer, this.#services.answerSize);
    const id = randomBytes(24).toString('base64url');
    const session: UploadSession = {
      owner: ownerOf(call),
      channel: account.channel.id,
      key: account.key.id,
      path,
      query: queryIn(address, path),
      offset: 0,
    };
    await this.#sessions.set(id, session, sessionLife);
    const root = this.#services.publicUrl ?? originOf(call);
    addReplyHeaders(call, {
      ...uploadHeadersIn(answer.headers),
      [`${words}url`]: `${root}/upload/${version}${path}?upload_id=${id}&upload_protocol=resumable`,
    });
    return of<GatewayEvent>({ type: 'result', value: {} });
  }

  async goOn(call: Call, id: string): Promise<Observable<GatewayEvent>> {
    const session = isId(id) ? await this.#sessions.get(id) : undefined;
    if (session === undefined || session.owner !== ownerOf(call))
      throw new GatewayError('not_found', 'Unknown upload.');
    // The key may have been given a budget since the upload began.
    if (session.path !== '/files') refuseBudgeted(call);
    const account = accountOf(
      { ...session, kind: '', id, createdAt: 0, seen: {}, known: {} },
      this.#services.finding.catalog,
    );
    // Each request goes on where the one before it has ended, or nothing is known of the file: what a provider took of one that broke is not.
    const { offset, path, lines: begun } = session;
    const isNext =
      path === '/files' &&
      call.wire.headers[`${words}offset`] === String(offset) &&
      (offset === 0 || begun !== undefined);
    const lines = linesOf(collection, this.#services, withoutDropping(this.#services), begun);
    let length = 0;
    const { upload, wrong } = streamed(bodyOf(call), this.#services.fileSize - offset, async (piece) => {
      length += piece.length;
      if (isNext) await lines.push(piece);
    });
    const send = async (own: Call): Promise<JsonObject> => {
      const answer = await sendRequest(own, account, format, {
        method: 'POST',
        path,
        service: 'upload',
        query: session.query,
        headers: { ...wordsOf(call), 'content-type': 'application/octet-stream' },
        upload,
      });
      addReplyHeaders(call, uploadHeadersIn(answer.headers));
      const body = await jsonOf(answer, this.#services.answerSize);
      const { file } = body;
      if (isObject(file)) {
        const known = knownOf(isNext ? lines.end() : undefined, lines.reason ?? session.reason);
        await keep(own, { collection, account, seen: file, known }, this.#services);
        await this.#sessions.delete(id);
      } else if (answer.headers[`${words}status`] === 'final') {
        await this.#sessions.delete(id);
      } else if (length > 0) {
        const next = continued(session, length, isNext ? lines : undefined, lines.reason);
        await this.#sessions.set(id, next, sessionLife);
      }
      return body;
    };
    try {
      return of<GatewayEvent>({ type: 'result', value: await madeAnyway(call, this.#services, send) });
    } catch (error) {
      upload.bytes.destroy();
      throw wrong() ?? error;
    } finally {
      lines.close();
    }
  }
}

function sessionsOf({ tools: { stores: kept } }: ObjectServices) {
  return kept.namespace<UploadSession>('provider-uploads');
}

/** Returns the upload headers of the client. */
function wordsOf({ wire: { headers } }: Call): Readonly<Record<string, string>> {
  return Object.fromEntries(
    requestHeaders.flatMap((word) => {
      const value = headers[words + word];
      return typeof value === 'string' ? [[words + word, value]] : [];
    }),
  );
}

function uploadHeadersIn(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    responseHeaders.flatMap((word) => {
      const value = headers[words + word];
      return typeof value === 'string' ? [[words + word, value]] : [];
    }),
  );
}

/** Returns the upload after `length` more bytes, with what `lines` have read of it; undefined where that is not known any more, for the `reason`. */
function continued(
  { lines: _before, ...rest }: UploadSession,
  length: number,
  lines: RequestLines | undefined,
  reason: string | undefined,
): UploadSession {
  const begun = lines?.begun();
  return {
    ...rest,
    offset: rest.offset + length,
    ...(begun === undefined ? {} : { lines: begun }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Returns the query by which the provider knows the upload. Its path must be the one where it began; other addresses are not followed. */
function queryIn(address: string | string[] | undefined, path: string): Readonly<Record<string, string>> {
  const url = typeof address === 'string' && URL.canParse(address) ? new URL(address) : undefined;
  const there = url === undefined ? undefined : /\/upload\/[^/]+(\/.*)$/.exec(url.pathname)?.[1];
  if (url === undefined || there !== path || url.searchParams.size === 0)
    throw new GatewayError('upstream_error', 'The upstream returned no URL for this upload.', {
      origin: 'upstream',
    });
  url.searchParams.delete('key');
  return Object.fromEntries(url.searchParams);
}

/** Returns a body as it comes, cut where it is too long. */
function streamed(body: RequestBody, limit: number, look: (piece: Buffer) => Promise<void>) {
  const source = body.stream(limit).iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let wrong: unknown;
  let length = 0;
  async function* pieces(): AsyncGenerator<Buffer> {
    try {
      for (let next = await source.next(); next.done !== true; next = await source.next()) {
        length += next.value.length;
        if (length > limit) {
          wrong = new GatewayError('request_too_large', `The request body is larger than ${limit} bytes.`);
          throw wrong;
        }
        await look(next.value);
        yield next.value;
      }
    } finally {
      // Closes the source. The code that sends the response reads what the client is still sending.
      await source.return?.();
    }
  }
  const bytes = Readable.from(pieces(), { objectMode: false, highWaterMark: 64 * 1024 });
  return {
    upload: { bytes, ...(body.length === undefined ? {} : { length: body.length }) },
    wrong: () => wrong,
  };
}
