/** HTTP trailers of a response, and the SSE comments at the end of a stream that have the same values. */
import type { ServerResponse } from 'node:http';
import type { Exchange } from '../call/exchange.ts';
import type { Log } from '../log.ts';
import { replyTrailers, type ReplyTrailers } from '../sdk/reply-headers.ts';
import { soundHeaders } from './head.ts';

/** Returns the trailers of a reply; undefined where no plugin has added any, which is nearly always. */
export function trailersOf(exchange: Exchange, response: ServerResponse, log: Log): Trailers | undefined {
  const added = exchange.values.get(replyTrailers);
  return added === undefined ? undefined : new Trailers(added, exchange, response, log);
}

/** The trailers of one reply: announced in its head, computed and sent behind its body. */
export class Trailers {
  readonly #added: readonly ReplyTrailers[];
  readonly #exchange: Exchange;
  readonly #response: ServerResponse;
  readonly #log: Log;
  #isAnnounced = false;

  constructor(added: readonly ReplyTrailers[], exchange: Exchange, response: ServerResponse, log: Log) {
    this.#added = added;
    this.#exchange = exchange;
    this.#response = response;
    this.#log = log;
  }

  /** Returns the headers with the names of the trailers, where the client accepts trailers and the response can carry them. */
  announced(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    if (!this.#canCarry(headers)) return headers;
    this.#isAnnounced = true;
    return { ...headers, trailer: [...new Set(this.#added.flatMap(({ names }) => names))].join(', ') };
  }

  /** Adds the announced trailers to the end of the response. Must be called before its last bytes are written. */
  add(): void {
    if (!this.#isAnnounced) return;
    this.#isAnnounced = false;
    this.#response.addTrailers(this.#values(() => true));
  }

  /** Returns comments for the end of a stream of server-sent events; empty when no plugin adds any, or when clients of the format cannot parse them. */
  comments(): string {
    const { framing, codec } = this.#exchange;
    if (framing !== 'sse' || !codec.toleratesComments) return '';
    const all = Object.entries(this.#values(({ comments = false }) => comments));
    return all.length === 0 ? '' : `${all.map(([name, value]) => `: ${name}: ${value}\n`).join('')}\n`;
  }

  /** Trailers belong to chunked bodies (RFC 9112, section 7.1.2), of clients that say that they read them (RFC 9110, section 6.5.1). */
  #canCarry(headers: Readonly<Record<string, string>>): boolean {
    const { req, useChunkedEncodingByDefault } = this.#response;
    const accepts = /(?:^|,)\s*trailers\s*(?:[;,]|$)/i.test(String(req.headers.te ?? ''));
    return accepts && useChunkedEncodingByDefault && headers['content-length'] === undefined;
  }

  #values(isWanted: (trailers: ReplyTrailers) => boolean): Readonly<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const trailers of this.#added) {
      if (!isWanted(trailers)) continue;
      try {
        for (const [name, value] of Object.entries(trailers.values()))
          if (trailers.names.includes(name)) found[name] = value;
      } catch (error) {
        this.#log.error({ id: this.#exchange.id, error }, 'trailers of a response could not be computed');
      }
    }
    return soundHeaders(found, this.#exchange.id, this.#log);
  }
}
