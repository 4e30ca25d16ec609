import { Resolver } from 'node:dns/promises';
import {
  request as requestHttp,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { addressList, type AddressList } from '../addresses.ts';
import type { Call } from '../call.ts';
import { GatewayError, wrongValue } from '../errors.ts';
import type { FetchSettings } from './fetch-settings.ts';
import { Deadline } from './guarded-fetch-deadline.ts';
import { hostOf, isOpenAddress, mayConnect, readClientUrl } from './guarded-fetch-address.ts';
import { mediaHead } from '../model/media-kind.ts';

/** What one fetch has to keep to. */
export interface FetchRules {
  /** Where the client gave the URL (`messages[0].content[1].image_url.url`), for errors. */
  readonly at: string;
  /** What is left for the files of a call; what arrives is taken off. */
  readonly room: { left: number };
  /** Asked once, when the beginning of the file is there. What it throws ends the fetch. */
  accept(head: Buffer, contentType: string | undefined): void;
}

/** A file that was fetched. */
export interface Fetched {
  readonly bytes: Buffer;
  /** Without parameters, lower case. */
  readonly contentType: string | undefined;
}

/**
 * Fetches files from URLs that clients give, from public addresses alone. Rejects with GatewayError 400 naming `rules.at`, and with the
 * same words for what is forbidden, what is not there and what does not answer. Ends with the call.
 */
export type GuardedFetch = (call: Pick<Call, 'onEnd'>, url: string, rules: FetchRules) => Promise<Fetched>;

/** What a name resolves to. */
export type ResolveName = (name: string) => {
  readonly addresses: Promise<readonly string[]>;
  cancel(): void;
};

/** What tests put in place of the world. */
export interface GuardedFetchParts {
  readonly resolve?: ResolveName;
  /** PEM text of a certificate authority that is trusted instead of the public ones. */
  readonly authority?: string;
}

/** A fetch that keeps to these settings. */
export function createGuardedFetch(settings: FetchSettings, parts: GuardedFetchParts = {}): GuardedFetch {
  const allowed = addressList(settings.allow);
  const slots = new Slots(settings.concurrency);
  return async function guardedFetch(call, text, rules) {
    const url = readClientUrl(text);
    if (typeof url === 'string') throw wrongValue(rules.at, url);
    await slots.take(call, settings.timeout);
    const deadline = new Deadline(call, settings.timeout);
    try {
      return await new Fetching(url, rules, { settings, allowed, deadline, parts }).run();
    } catch (error) {
      throw error instanceof GatewayError ? error : notFetched(rules.at, error);
    } finally {
      deadline.end();
      slots.give();
    }
  };
}

/** The one sentence for whatever happened before a file began to arrive: it tells nobody what there is in a private network. */
function notFetched(at: string, cause?: unknown): GatewayError {
  return new GatewayError('invalid_value', `${at}: no file could be fetched from this URL.`, {
    param: at,
    cause,
  });
}

interface Surroundings {
  readonly settings: FetchSettings;
  readonly allowed: AddressList;
  readonly deadline: Deadline;
  readonly parts: GuardedFetchParts;
}

/** One fetch, through its redirects. */
class Fetching {
  #url: URL;
  readonly #rules: FetchRules;
  readonly #around: Surroundings;

  constructor(url: URL, rules: FetchRules, around: Surroundings) {
    this.#url = url;
    this.#rules = rules;
    this.#around = around;
  }

  async run(): Promise<Fetched> {
    const { settings } = this.#around;
    for (let hops = 0; ; hops += 1) {
      const { request, response } = await this.#open();
      try {
        const next = redirectOf(response);
        if (next === undefined) return await this.#read(response);
        if (hops === settings.redirects) throw notFetched(this.#rules.at);
        this.#follow(next);
      } finally {
        request.destroy();
      }
    }
  }

  #follow(location: string): void {
    const resolved = location === '' ? null : URL.parse(location, this.#url.href);
    const next = resolved === null ? '' : readClientUrl(resolved.href);
    if (typeof next === 'string') throw notFetched(this.#rules.at);
    if (this.#url.protocol === 'https:' && next.protocol === 'http:') throw notFetched(this.#rules.at);
    this.#url = next;
  }

  /** Connects to addresses that were checked, and to no other: the name is resolved once, and not again by whoever connects. */
  async #open(): Promise<{ readonly request: ClientRequest; readonly response: IncomingMessage }> {
    const { allowed, deadline, parts } = this.#around;
    const url = this.#url;
    if (!mayConnect(url, allowed)) throw notFetched(this.#rules.at);
    const host = hostOf(url);
    const addresses =
      isIP(host) === 0 ? await resolveWithin(deadline, host, parts.resolve ?? resolvePublicly) : [host];
    if (addresses.length === 0 || !addresses.every((address) => isOpenAddress(address, allowed)))
      throw notFetched(this.#rules.at);
    const options: RequestOptions & { ca?: string } = {
      method: 'GET',
      hostname: host,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'sluice' },
      // A connection of its own, closed behind the answer: none is shared between callers.
      agent: false,
      maxHeaderSize: 16 * 1024,
      lookup: onlyThese(addresses),
      ...(url.port === '' ? {} : { port: url.port }),
    };
    return deadline.during((resolve, reject) => {
      const request =
        url.protocol === 'https:'
          ? requestHttps({
              ...options,
              rejectUnauthorized: true,
              ...(isIP(host) === 0 ? { servername: host } : {}),
              ...(parts.authority === undefined ? {} : { ca: parts.authority }),
            })
          : requestHttp(options);
      request.on('response', (response) => {
        // The listener stays: a socket that breaks later must not end the process.
        response.on('error', () => {});
        const remote = response.socket.remoteAddress;
        if (remote !== undefined && isOpenAddress(remote, allowed)) resolve({ request, response });
        else {
          request.destroy();
          reject(notFetched(this.#rules.at));
        }
      });
      request.on('error', reject);
      request.on('close', () => reject(notFetched(this.#rules.at)));
      request.end();
      return () => request.destroy();
    });
  }

  async #read(response: IncomingMessage): Promise<Fetched> {
    const { at, room } = this.#rules;
    const { size, timeout } = this.#around.settings;
    const { statusCode = 0, headers } = response;
    if (statusCode !== 200) throw refused(at, `the server of this URL answered ${statusCode}`);
    const encoding = headers['content-encoding']?.trim().toLowerCase() ?? '';
    if (encoding !== '' && encoding !== 'identity')
      throw refused(at, 'the file came compressed, which was not asked for');
    const announced = Number(headers['content-length'] ?? 0);
    const check = (length: number, more: number): void => {
      if (length > size) throw refused(at, `the file is larger than ${size} bytes`);
      if (more > room.left) throw refused(at, 'with this file, those of the request are too large together');
    };
    check(announced, announced);
    const contentType = typeOf(headers['content-type']);
    this.#around.deadline.reason = () => refused(at, `the file did not arrive within ${timeout} ms`);
    let taken = 0;
    try {
      const bytes = await this.#around.deadline.during<Buffer>((resolve, reject) => {
        const chunks: Buffer[] = [];
        let accepted = false;
        const accept = (head: Buffer): void => {
          accepted = true;
          this.#rules.accept(head, contentType);
        };
        response.on('data', (chunk: Buffer) => {
          try {
            check(taken + chunk.length, chunk.length);
            chunks.push(chunk);
            taken += chunk.length;
            room.left -= chunk.length;
            if (!accepted && taken >= mediaHead) accept(Buffer.concat(chunks).subarray(0, mediaHead));
          } catch (error) {
            response.destroy();
            reject(error);
          }
        });
        response.on('close', () => {
          if (!response.complete) reject(refused(at, 'the file was cut on its way'));
        });
        response.on('end', () => {
          if (!response.complete) return;
          try {
            const whole = Buffer.concat(chunks, taken);
            if (!accepted) accept(whole);
            resolve(whole);
          } catch (error) {
            reject(error);
          }
        });
        return () => response.destroy();
      });
      return { bytes, contentType };
    } catch (error) {
      room.left += taken;
      throw error;
    }
  }
}

/** A failure after an answer of an open address has begun: there is nothing to hide. */
function refused(at: string, what: string): GatewayError {
  return new GatewayError('invalid_value', `${at}: ${what}.`, { param: at });
}

/** Where an answer sends us; undefined when it is to be read. */
function redirectOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? (headers.location ?? '') : undefined;
}

function typeOf(header: string | undefined): string | undefined {
  const type = (header?.split(';')[0] ?? '').trim().toLowerCase();
  return type === '' ? undefined : type;
}

/** Answers every question with the addresses that were checked. */
function onlyThese(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    const [first] = entries;
    if (options.all === true) callback(null, entries);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}

async function resolveWithin(
  deadline: Deadline,
  name: string,
  resolveName: ResolveName,
): Promise<readonly string[]> {
  const { addresses, cancel } = resolveName(name);
  return deadline.during((resolve, reject) => {
    addresses.then(resolve, reject);
    return cancel;
  });
}

/**
 * Asks the name servers, not the system: the hosts file holds private names, and the system's own way keeps one of a few threads busy for
 * as long as a stranger's name server likes.
 */
const resolvePublicly: ResolveName = (name) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const both = [resolver.resolve4(name), resolver.resolve6(name)];
  return {
    addresses: Promise.allSettled(both).then((answers) =>
      answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])),
    ),
    cancel: () => resolver.cancel(),
  };
};

/** So many at a time; the others wait in their order. */
class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  async take(call: Pick<Call, 'onEnd'>, timeout: number): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const deadline = new Deadline(call, timeout);
    deadline.reason = () =>
      new GatewayError('server_is_overloaded', 'Too many files are being fetched: try again later.');
    try {
      await deadline.during<void>((resolve) => {
        this.#waiting.add(resolve);
        return () => this.#waiting.delete(resolve);
      });
    } finally {
      deadline.end();
    }
  }

  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
