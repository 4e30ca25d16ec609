/** Fetches files from URLs given by clients, through the guard and within limits of size, time, redirects and parallel fetches. */
import type { IncomingMessage } from 'node:http';
import { HeldBytes } from '../../model/held-bytes.ts';
import { addressList, type AddressList } from '../../model/addresses.ts';
import type { Call } from '../../sdk/call.ts';
import { GatewayError, wrongValue } from '../../sdk/errors.ts';
import type { FetchSettings } from '../../settings/fetch.ts';
import { requestGuarded, redirectedTo, type GuardedAnswer, type GuardedParts } from './connection.ts';
import { Deadline } from './deadline.ts';
import { readClientUrl } from './address.ts';
import { mediaHead } from '../../model/media-kind.ts';

/** Rules of one fetch. */
export interface FetchRules {
  /** Path of the URL in the client's body (`messages[0].content[1].image_url.url`), for errors. */
  readonly at: string;
  /** Bytes that are left for the files of a call; received bytes are subtracted. */
  readonly room: { left: number };
  /** Called once with the beginning of the file. An error that it throws ends the fetch. */
  accept(head: Buffer, contentType: string | undefined): void;
}

/** A file that was fetched. */
export interface Fetched {
  readonly bytes: Buffer;
  /** Without parameters, lower case. */
  readonly contentType: string | undefined;
}

/**
 * Fetches files from URLs that clients give, only from public addresses. Rejects with GatewayError 400 naming `rules.at`, with the
 * same message for forbidden, missing and unreachable URLs. Ends with the call.
 */
export type GuardedFetch = (call: Pick<Call, 'onEnd'>, url: string, rules: FetchRules) => Promise<Fetched>;

/** Returns the fetch function for these settings. */
export function createGuardedFetch(settings: FetchSettings, parts: GuardedParts = {}): GuardedFetch {
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

/** Returns the error for all failures before the file arrives. One message, so that it reveals nothing about a private network. */
function notFetched(at: string, cause?: unknown): GatewayError {
  return new GatewayError('invalid_value', `${at}: the file at this URL could not be fetched.`, {
    param: at,
    cause,
  });
}

interface FetchContext {
  readonly settings: FetchSettings;
  readonly allowed: AddressList;
  readonly deadline: Deadline;
  readonly parts: GuardedParts;
}

/** Runs one fetch and follows its redirects. */
class Fetching {
  #url: URL;
  readonly #rules: FetchRules;
  readonly #context: FetchContext;

  constructor(url: URL, rules: FetchRules, around: FetchContext) {
    this.#url = url;
    this.#rules = rules;
    this.#context = around;
  }

  async run(): Promise<Fetched> {
    const { settings } = this.#context;
    for (let hops = 0; ; hops += 1) {
      const { request, response } = await this.#open();
      try {
        const next = redirectedTo(this.#url, response);
        if (next === undefined) return await this.#read(response);
        if (next === 'forbidden' || hops === settings.redirects) throw notFetched(this.#rules.at);
        this.#url = next;
      } finally {
        request.destroy();
      }
    }
  }

  #open(): Promise<GuardedAnswer> {
    const { allowed, deadline, parts } = this.#context;
    return deadline.during((resolve, reject) => {
      const { answer, cancel } = requestGuarded(this.#url, { ...parts, allowed, headers: { accept: '*/*' } });
      answer.then(resolve, reject);
      return cancel;
    });
  }

  async #read(response: IncomingMessage): Promise<Fetched> {
    const { at, room } = this.#rules;
    const { size, timeout } = this.#context.settings;
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
    this.#context.deadline.reason = () => refused(at, `the file did not arrive within ${timeout} ms`);
    let taken = 0;
    try {
      const bytes = await this.#context.deadline.during<Buffer>((resolve, reject) => {
        const held = new HeldBytes();
        let accepted = false;
        const accept = (head: Buffer): void => {
          accepted = true;
          this.#rules.accept(head, contentType);
        };
        response.on('data', (chunk: Buffer) => {
          try {
            check(taken + chunk.length, chunk.length);
            held.push(chunk);
            taken += chunk.length;
            room.left -= chunk.length;
            if (!accepted && taken >= mediaHead) {
              const begun = held.take();
              accept(begun.subarray(0, mediaHead));
              held.push(begun);
            }
          } catch (error) {
            response.destroy();
            reject(error);
          }
        });
        response.on('close', () => {
          if (!response.complete) reject(refused(at, 'the file ended before it was complete'));
        });
        response.on('end', () => {
          if (!response.complete) return;
          try {
            const whole = held.take();
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

/** Returns the error for a failure after the response of an allowed address has begun, with the reason. */
function refused(at: string, what: string): GatewayError {
  return new GatewayError('invalid_value', `${at}: ${what}.`, { param: at });
}

function typeOf(header: string | undefined): string | undefined {
  const type = (header?.split(';')[0] ?? '').trim().toLowerCase();
  return type === '' ? undefined : type;
}

/** Limits the number of parallel fetches; others wait in order. */
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
      new GatewayError('server_is_overloaded', 'Too many files are being fetched. Retry later.');
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
