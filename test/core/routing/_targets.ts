import type { Channel, Target } from '../../../core/sdk/call.ts';
import type { KnownModel } from '../../../core/sdk/channel.ts';
import type { GatewayError } from '../../../core/sdk/errors.ts';
import { createCatalog, type Candidate, type Catalog } from '../../../core/routing/catalog.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import type { Health, Standing, AttemptReport } from '../../../core/sdk/health.ts';

/** Options of a channel that serves the model `m`. */
export interface Wanted {
  readonly id: string;
  readonly priority?: number;
  readonly weight?: number;
  /** Ids of the channel's keys. */
  readonly keys?: readonly string[];
  /** Site of each key. */
  readonly sites?: readonly number[];
  readonly firstTokenTimeout?: number;
  readonly attemptTimeout?: number;
  readonly speaks?: Channel['speaks'];
  /** Provider to which the channel forwards credentials of clients. */
  readonly forwards?: string;
  readonly known?: KnownModel;
  readonly traits?: ModelTraits;
}

export function fakeChannel({
  id,
  priority = 0,
  weight = 1,
  keys = ['a'],
  sites,
  known,
  traits = {},
  ...times
}: Wanted): Channel {
  return {
    id,
    kind: 'fake',
    models: ['m'],
    priority,
    weight,
    keys: keys.map((key, index) => ({
      id: key,
      index,
      ...(sites?.[index] === undefined ? {} : { site: sites[index] }),
    })),
    codecs: {},
    speaks: { chat: ['plain'] },
    upstreamModel: (model) => model,
    traits: () => traits,
    ...(known === undefined ? {} : { known: () => known }),
    open: () => Promise.reject(new Error('not opened here')),
    close: () => Promise.resolve(),
    ...times,
  };
}

export const catalogOf = (...wanted: readonly Wanted[]): Catalog => createCatalog(wanted.map(fakeChannel), 0);
export const candidatesOf = (...wanted: readonly Wanted[]): readonly Candidate[] =>
  catalogOf(...wanted).candidates('m');

/** `channel/key`. */
export const nameOf = ({ channel, key }: Target): string => `${channel.id}/${key.id}`;

/** Returns a random generator with a fixed seed. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Fake health that records the reported outcomes. */
export class FakeHealth implements Health {
  /** Wait times in milliseconds by `channel/key`. */
  readonly waits = new Map<string, number>();
  readonly standings = new Map<string, Standing>();
  /** Targets that reject attempts. */
  readonly closed = new Set<string>();
  /** `channel/key outcome`, in the order of the reports. */
  readonly outcomes: string[] = [];
  readonly errors: GatewayError[] = [];
  /** `channel/key` of attempts whose reply has begun. */
  readonly answered: string[] = [];
  /** Number of attempts whose outcome has not been reported. */
  open = 0;
  /** Number of attempts whose outcome was reported more than once. */
  doubled = 0;
  readonly sharing = 'alone';

  waitMs(target: Target): number {
    return this.waits.get(nameOf(target)) ?? 0;
  }
  standing(target: Target): Standing {
    return this.standings.get(nameOf(target)) ?? 'up';
  }
  enter(target: Target): AttemptReport | undefined {
    const name = nameOf(target);
    if (this.closed.has(name)) return undefined;
    this.open += 1;
    let over = false;
    const end = (how: string): void => {
      if (over) this.doubled += 1;
      else this.open -= 1;
      over = true;
      this.outcomes.push(`${name} ${how}`);
    };
    return {
      answered: () => this.answered.push(name),
      succeeded: () => end('succeeded'),
      failed: (error) => {
        this.errors.push(error);
        end('failed');
      },
      left: () => end('left'),
    };
  }
  report(): readonly never[] {
    return [];
  }
  reset(): void {}
  follow(): () => void {
    return () => {};
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}
