/** Interface through which circuit breakers are shared with other gateways and workers. */
import type { KeyOrModel } from '../../sdk/health.ts';

/** State of a breaker as gateways exchange it. Times are milliseconds from now. */
export interface SharedBreaker {
  readonly name: KeyOrModel;
  readonly cool: number;
  readonly rest: number;
  /** 0: the breaker is closed. */
  readonly rests: number;
  readonly base: number;
  readonly last?: Trouble;
  /** True when the breaker was reset. */
  readonly forgotten?: boolean;
}

/** Callbacks into the circuit breakers of this process. */
export interface SharingHooks {
  /** Takes a state that another gateway reports. */
  readonly adopt: (breaker: SharedBreaker) => void;
  /** Returns all states, for a store that may have lost its data. */
  readonly known: () => readonly SharedBreaker[];
  /** Called about twice a second, while the store answers. */
  readonly tick: () => void;
}

/** Connection to other gateways. Nothing here throws, and no call waits for it. */
export interface HealthSharing {
  readonly isUp: boolean;
  publish(breaker: SharedBreaker): void;
  /**
   * Claims the right to probe for `lease` milliseconds. Resolves with 0 when it is granted, else with the milliseconds for which another
   * one has it; undefined when there is no response.
   */
  acquire(name: KeyOrModel, lease: number): Promise<number | undefined>;
  release(name: KeyOrModel): void;
  close(): Promise<void>;
}

/** Last failure at a key or model. */
export interface Trouble {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly code: string;
  readonly message: string;
}
