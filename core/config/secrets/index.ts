/** Secrets that the config and run-time entries name by reference: reads them, and keeps the last values. */
import { createHash } from 'node:crypto';
import { forgetSecret, hideEndingSecret } from '../../log.ts';
import type { SecretSource } from '../../sdk/author/secrets.ts';
import type { SecretReference } from '../../settings/secret-reference.ts';
import { keyOfKnown, type KnownSecret } from './known.ts';
import { readSecret, reasonOf, textOfSecret, type SecretValue } from './read.ts';
import { ownSources } from './sources.ts';
import { Semaphore } from '../../sdk/semaphore.ts';

/** Longest time for all reads of secrets of a config file together, and of those of run-time entries, in milliseconds. */
export const startTime = 30_000;

/** Maximum number of references that are known at once. */
const mostReferences = 1_000;

/** Number of secrets that are read at once. */
const atOnce = 8;

/** Time for which a value that another process of this gateway has read is as good as one's own, in milliseconds. */
const freshFor = 10_000;

/** Time after which a reference that nothing in force uses is read again, in milliseconds: administrators try them. */
const trialFor = 30_000;

/** A reference that cannot be read. */
export interface FailingSecret {
  readonly reference: string;
  readonly reason: string;
  /** False where no value was read either when the gateway was built: what refers to it was left out. */
  readonly isInForce: boolean;
  /** Start of the failures, in milliseconds since 1970. */
  readonly since: number;
}

interface Entry {
  readonly reference: SecretReference;
  /** The newest value. */
  text: string | undefined;
  readAt: number;
  /** Time of the last attempt of this process to read it. */
  triedAt: number;
  /** The value that the gateway of this process was built with; undefined for one that nothing in force uses. */
  inForce: string | undefined;
  /** True where it could not be read when the gateway was built, so that a run-time entry was left out. */
  isMissing: boolean;
  failing: Pick<FailingSecret, 'reason' | 'since'> | undefined;
}

/** Parts that secrets are read with. */
export interface SecretsParts {
  readonly sources?: ReadonlyMap<string, SecretSource>;
  /** Digests of the options of sources, by the names of the sources. */
  readonly digests?: ReadonlyMap<string, string>;
  /** Values that another process of this gateway has read. */
  readonly known?: readonly KnownSecret[];
  readonly timeout: number;
  readonly close?: () => Promise<void>;
}

/** The secrets of one process. */
export class Secrets {
  readonly #sources: ReadonlyMap<string, SecretSource>;
  readonly #sourceDigests: ReadonlyMap<string, string>;
  /** Values of another process, by {@link keyOfKnown}. */
  readonly #known: ReadonlyMap<string, KnownSecret>;
  readonly #timeout: number;
  readonly #entries = new Map<string, Entry>();
  /** Reads that run, by source, name and version: several fields of a secret share one. */
  readonly #reading = new Map<string, Promise<SecretValue>>();
  readonly #permits = new Semaphore(atOnce);
  #isBuilt = false;
  #close: () => Promise<void>;

  constructor({
    sources = new Map(),
    digests = new Map(),
    known = [],
    timeout,
    close = async () => {},
  }: SecretsParts) {
    this.#sources = new Map([...sources, ...ownSources]);
    this.#sourceDigests = digests;
    this.#known = new Map(known.map((one) => [keyOfKnown(one), one]));
    this.#timeout = timeout;
    this.#close = close;
  }

  /**
   * Returns the text that a reference stands for, or why there is none, as the end of a sentence. A value of before stands in for one that cannot be
   * read now. Never rejects.
   */
  async get(
    reference: SecretReference,
    signal?: AbortSignal,
  ): Promise<{ readonly text: string } | { readonly problem: string }> {
    const entry = this.#entryOf(reference);
    if (entry === undefined)
      return { problem: `there are more than ${mostReferences} references: name fewer secrets` };
    if (!this.#isGood(entry)) await this.#read(entry, signal);
    const { text, failing } = entry;
    if (text === undefined) return { problem: failing?.reason ?? 'it was not read' };
    if (!this.#isBuilt) entry.inForce ??= text;
    return { text };
  }

  /** Puts in force what was read until now, because the gateway has been built. What could not be read is read again by {@link refresh}. */
  built(): void {
    this.#isBuilt = true;
    for (const entry of this.#entries.values()) entry.isMissing = entry.inForce === undefined;
  }

  /** Reads all secrets in use anew. Returns the references whose value is no longer the one in force, or that can be read at last. */
  async refresh(): Promise<readonly string[]> {
    await Promise.all(this.#inUse().map((entry) => this.#read(entry)));
    return this.#inUse().flatMap(({ text, inForce, reference }) =>
      text === inForce ? [] : [reference.text],
    );
  }

  /** Returns the newest values of the secrets in use, for the next processes of this gateway. */
  known(): readonly KnownSecret[] {
    return this.#inUse().flatMap(({ reference, text, readAt }) =>
      text === undefined
        ? []
        : [{ reference: reference.text, source: this.#digestOf(reference), text, readAt }],
    );
  }

  /** Returns the number of references in use, and those that cannot be read. */
  standing(): { readonly references: number; readonly failing: readonly FailingSecret[] } {
    const entries = this.#inUse();
    return {
      references: entries.length,
      failing: entries.flatMap(({ reference, isMissing, failing }) =>
        failing === undefined ? [] : [{ reference: reference.text, isInForce: !isMissing, ...failing }],
      ),
    };
  }

  /** Returns a digest of each value in force, by which processes tell whether theirs are the same. */
  digests(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#inUse().map(({ reference, inForce = '' }) => [
        reference.text,
        createHash('sha256').update(inForce).digest('hex').slice(0, 16),
      ]),
    );
  }

  /** Returns the reference of which a text is the value; undefined for any other text. */
  referenceOf(text: string): string | undefined {
    for (const entry of this.#entries.values())
      if (entry.text === text || entry.inForce === text) return entry.reference.text;
    return undefined;
  }

  /** Returns true for a text that contains the value of a reference. Values of fewer than 8 characters are left, because they occur in words. */
  isWithin(text: string): boolean {
    return [...this.#entries.values()].some(({ text: newest = '', inForce = '' }) =>
      [newest, inForce].some((value) => value.length >= 8 && text.includes(value)),
    );
  }

  /** Names of the sources, sorted. */
  get sources(): readonly string[] {
    return [...this.#sources.keys()].toSorted();
  }

  close(): Promise<void> {
    const close = this.#close;
    this.#close = async () => {};
    return close();
  }

  #inUse(): readonly Entry[] {
    return [...this.#entries.values()].filter(isInUse);
  }

  #digestOf({ source }: SecretReference): string {
    return this.#sourceDigests.get(source) ?? '';
  }

  #entryOf(reference: SecretReference): Entry | undefined {
    const before = this.#entries.get(reference.text);
    if (before !== undefined) return before;
    if (this.#entries.size >= mostReferences) this.#forgetTrial();
    if (this.#entries.size >= mostReferences) return undefined;
    const known = this.#known.get(
      keyOfKnown({ reference: reference.text, source: this.#digestOf(reference) }),
    );
    if (known !== undefined) hideEndingSecret(known.text);
    const entry: Entry = {
      reference,
      text: known?.text,
      readAt: known?.readAt ?? 0,
      triedAt: known?.readAt ?? 0,
      inForce: undefined,
      isMissing: false,
      failing: undefined,
    };
    this.#entries.set(reference.text, entry);
    return entry;
  }

  /** Makes room: forgets the reference that was tried longest ago, of those that nothing in force uses. */
  #forgetTrial(): void {
    const trials = [...this.#entries.values()].filter((entry) => !isInUse(entry));
    const [oldest] = trials.toSorted((one, other) => one.triedAt - other.triedAt);
    if (oldest === undefined) return;
    this.#entries.delete(oldest.reference.text);
    if (oldest.text !== undefined) forgetSecret(oldest.text);
  }

  #isGood({ triedAt, inForce, text }: Entry): boolean {
    if (inForce !== undefined) return true;
    return Date.now() - triedAt < (this.#isBuilt && text !== undefined ? trialFor : freshFor);
  }

  async #read(entry: Entry, signal?: AbortSignal): Promise<void> {
    const { reference } = entry;
    try {
      const text = textOfSecret(reference, await this.#valueOf(reference, entry.text === undefined, signal));
      const { text: before, inForce } = entry;
      entry.text = text;
      // The newest value is hidden once, and so is the one in force.
      if (text !== before) {
        if (text !== inForce) hideEndingSecret(text);
        if (before !== undefined && before !== inForce) forgetSecret(before);
      }
      entry.readAt = Date.now();
      entry.failing = undefined;
    } catch (error) {
      entry.failing = { reason: reasonOf(error), since: entry.failing?.since ?? Date.now() };
    }
    entry.triedAt = Date.now();
  }

  /** `retries`: no value of before could stand in. */
  #valueOf(reference: SecretReference, retries: boolean, signal?: AbortSignal): Promise<SecretValue> {
    const { source: name, name: path, version = '' } = reference;
    const source = this.#sources.get(name);
    if (source === undefined)
      return Promise.reject(
        new Error(
          `no plugin in the config provides the source "${name}": add one to "plugins", such as secretsVault({ … })`,
        ),
      );
    const key = JSON.stringify([name, path, version]);
    const running = this.#reading.get(key);
    if (running !== undefined) return running;
    const read = this.#permits
      .run(() => readSecret(source, reference, { timeout: this.#timeout, retries, signal }))
      .finally(() => this.#reading.delete(key));
    this.#reading.set(key, read);
    return read;
  }
}

/** Returns true for a reference that the config or a run-time entry of it has. All others were tried by administrators. */
function isInUse({ inForce, isMissing }: Entry): boolean {
  return inForce !== undefined || isMissing;
}
