/** The requests of the clients, as they go over the wire. */
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { addedHeaders, bodyOf, headersOf, pathOf } from './inputs.ts';
import type { Shot } from './load.ts';
import { sessionOf } from './sessions.ts';

/** A request without its method. */
export interface Sent {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream has no length that could be told. */
  readonly body: Buffer | Readable;
}

/** A body that is sent many times. */
interface Made {
  readonly body: Buffer;
  /** Offsets of the parts of ids that differ in each session. */
  readonly ids: readonly number[];
}

const made = new Map<string, Made>();
const pieceLength = 64 * 1024;
const idLength = 10;
let sessions = 0;

/** The next request of this kind. */
export function requestOf(shot: Shot): Sent {
  const { wire, model, stream, key, manner = {} } = shot;
  const headers = {
    ...headersOf(wire, key),
    ...(manner.moreHeaders === true ? addedHeaders : {}),
    ...(manner.body === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
  };
  const known = madeFor(shot);
  const body = manner.fresh === true ? renamed(known) : known.body;
  return {
    path: pathOf(wire, model, stream),
    headers,
    body: manner.body === 'chunked' ? Readable.from(piecesOf(body)) : body,
  };
}

function madeFor({ wire, input, model, stream, manner = {} }: Shot): Made {
  const name = JSON.stringify([wire, input, model, stream, manner]);
  const known = made.get(name);
  if (known !== undefined) return known;
  if (made.size > 100) made.clear();
  const text = bodyOf(wire, sessionOf(input, manner.ids), model, stream, manner.json);
  const bytes = Buffer.from(text);
  const ids = manner.fresh === true ? placesOfIds(bytes) : [];
  const one: Made = { body: manner.body === 'gzip' ? gzipSync(bytes) : bytes, ids };
  made.set(name, one);
  return one;
}

/** Returns the offsets of the random parts of ids in OpenAI's form. */
function placesOfIds(bytes: Buffer): readonly number[] {
  const found = [...bytes.toString('latin1').matchAll(/"call_[0-9A-Za-z]{24}"/g)];
  return found.map(({ index }) => index + '"call_'.length);
}

/** The same body, whose ids were in no other. */
function renamed({ body, ids }: Made): Buffer {
  sessions += 1;
  const part = sessions.toString(36).padStart(idLength, '0');
  const copy = Buffer.from(body);
  for (const offset of ids) copy.write(part, offset, 'latin1');
  return copy;
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let from = 0; from < body.length; from += pieceLength) yield body.subarray(from, from + pieceLength);
}
