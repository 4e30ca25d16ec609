import { formats, type Format, type Size } from './dialects.ts';
import { faults, type Fault, type Mode } from './faults.ts';
import { randomFrom, type Random } from './random.ts';

/** Behaviour of a client: `leaves` after some milliseconds, reads in `slow` steps, or waits and reads. */
export type Conduct = 'stays' | 'leaves' | 'slow';

/** One call, and all that is decided about it beforehand. */
export interface Case {
  readonly number: number;
  readonly fault: Fault;
  readonly client: Format;
  readonly channel: Format;
  /** The format of the sound channel behind the first; absent where there is none. */
  readonly second?: Format;
  readonly mode: Mode;
  readonly conduct: Conduct;
  /** Milliseconds after which a client leaves. */
  readonly leaveAfter: number;
  readonly size: Size;
  /** Over a connection of its own. */
  readonly fresh: boolean;
  /** Asks for the usage of its stream, in the format where one must. */
  readonly asksUsage: boolean;
  /** Which of the API keys. */
  readonly key: number;
}

/** The case in one line, by which it is found and run again. */
export function nameOf({ fault, mode, client, channel, second, conduct, size }: Case): string {
  const behind = second === undefined ? 'alone' : `pair-${second}`;
  return `${fault.name} ${mode} ${client} > ${channel} ${behind} ${conduct} ${size}`;
}

/** The public model of a case: it finds its channel, and says its fault to the provider. */
export function modelOf({ fault, channel, second }: Case): string {
  return `${fault.name}.${channel}.${second === undefined ? 'alone' : `pair-${second}`}`;
}

/** Which cases are made. */
export interface Choice {
  readonly seed: number;
  /** A part of the case's line: others are left out. */
  readonly only?: string | undefined;
  /** Number of passes through the matrix. Default 1. */
  readonly rounds?: number;
  /** The most cases. */
  readonly most?: number;
}

/** Every fault in every mode, for every pair of formats, with another channel behind it and without; in an order that the seed decides. */
export function matrix({ seed, only, rounds = 1, most = Infinity }: Choice): Case[] {
  const random = randomFrom(seed);
  const cases: Case[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const fault of faults) {
      for (const mode of fault.modes) {
        for (const client of formats) {
          for (const channel of formats) {
            for (const paired of [false, true]) {
              if (fault.heavy === true && !random.chance(0.1)) continue;
              const behind = paired ? { second: random.pick(formats) } : {};
              cases.push({ ...decided(random, fault, mode), client, channel, ...behind });
            }
          }
        }
      }
    }
  }
  return random
    .shuffled(cases)
    .map((one, number) => ({ ...one, number: number + 1 }))
    .filter((one) => only === undefined || nameOf(one).includes(only))
    .slice(0, most);
}

type Decided = Omit<Case, 'client' | 'channel' | 'second'>;

/** Makes the random choices of a call. */
function decided(random: Random, fault: Fault, mode: Mode): Decided {
  const draw = random.next();
  const conduct: Conduct =
    fault.moment === 'endless' || draw < 0.12 ? 'leaves' : draw < 0.24 ? 'slow' : 'stays';
  const long = fault.moment === 'endless' ? 200 + random.int(600) : random.int(random.chance(0.5) ? 10 : 120);
  return {
    number: 0,
    fault,
    mode,
    conduct,
    leaveAfter: long,
    size: conduct === 'slow' || random.chance(0.1) ? 'large' : 'small',
    fresh: random.chance(0.5),
    asksUsage: random.chance(0.5),
    key: random.int(3),
  };
}
