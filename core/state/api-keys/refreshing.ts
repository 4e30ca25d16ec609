/** Follows what other processes change of keys. */
import type { Owners } from '../owners/index.ts';
import type { ReportError } from '../stores.ts';
import type { Filling } from './filling.ts';
import type { KeysInUse } from './in-use.ts';
import type { LastUses } from './last-uses.ts';
import type { OldSecrets } from './old-secrets.ts';

/** Half of the second in which a change takes effect, so that the reading and a busy machine fit in the other half, in milliseconds. */
const refreshEvery = 500;

/** Refreshes between two savings of the times of last uses. */
const refreshesPerSave = 120;

/** Parts of the keys that are read again, and saved. */
export interface Refreshed {
  readonly owners: Owners;
  readonly inUse: KeysInUse;
  readonly oldSecrets: OldSecrets;
  readonly filling: Filling;
  readonly lastUses: LastUses;
}

/** Reads again and again what others have changed, and saves when keys were last used. */
export class Refreshing {
  readonly #owners: Owners;
  readonly #inUse: KeysInUse;
  readonly #oldSecrets: OldSecrets;
  readonly #filling: Filling;
  readonly #lastUses: LastUses;
  readonly #report: ReportError;
  #timer: NodeJS.Timeout | undefined;
  #refreshes = 0;
  #refreshing: Promise<void> | undefined;
  #isStopped = false;
  #failing = false;

  constructor({ owners, inUse, oldSecrets, filling, lastUses }: Refreshed, report: ReportError) {
    this.#owners = owners;
    this.#inUse = inUse;
    this.#oldSecrets = oldSecrets;
    this.#filling = filling;
    this.#lastUses = lastUses;
    this.#report = report;
  }

  async #saveUses(): Promise<void> {
    await this.#lastUses.save();
    await this.#oldSecrets.save();
  }

  /** Reads what others have changed. A database that hangs is asked by one at a time. */
  #refresh(): void {
    this.#refreshing ??= this.#readChanges().finally(() => {
      this.#refreshing = undefined;
    });
  }

  async #readChanges(): Promise<void> {
    try {
      for (const step of [
        () => this.#inUse.refresh(),
        () => this.#oldSecrets.refresh(),
        () => this.#owners.refresh(),
      ]) {
        // oxlint-disable-next-line no-await-in-loop -- one question at a time, so that calls find a connection
        await step();
        if (this.#isStopped) return;
      }
      this.#refreshes += 1;
      if (this.#refreshes % refreshesPerSave === 0) await this.#saveUses();
      this.#failing = false;
    } catch (error) {
      // Once per failure of the database, not once a second.
      if (!this.#failing) {
        this.#report(
          new Error('API keys could not be refreshed; those in memory go on working.', { cause: error }),
        );
      }
      this.#failing = true;
    }
    // What is missing is tried again with the next refreshing.
    if (!this.#failing) void this.#filling.run().catch(() => {});
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#refresh(), refreshEvery).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#isStopped = true;
    // A reading under way would otherwise meet closed stores; whether it succeeds no longer matters.
    await Promise.all([
      this.#refreshing,
      this.#inUse.close(),
      this.#oldSecrets.close(),
      this.#filling.close(),
      this.#owners.stop(),
    ]);
    // A database that fails must not keep the process from ending.
    await this.#saveUses().catch((cause: unknown) =>
      this.#report(new Error('When API keys were last used could not be saved.', { cause })),
    );
  }
}
