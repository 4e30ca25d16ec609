/** Interface through which circuit breakers are shared with other gateways and workers. */
import type { PlaceName } from '../../sdk/health.ts';

/** State of a breaker as gateways exchange it. Times are milliseconds from now. */
export interface SharedPlace {
  readonly name: PlaceName;
  readonly cool: number;
  readonly rest: number;
  /** 0: it may be asked. */
  readonly rests: number;
  readonly base: number;
  readonly last?: Trouble;
  /** True when somebody wants everything about it forgotten. */
  readonly forgotten?: boolean;
}

/** Callbacks into the circuit breakers of this process. */
export interface SharingHooks {
  /** Another gateway found this out. */
  readonly heard: (place: SharedPlace) => void;
  /** All that should be told to a store that may have lost its memory. */
  readonly known: () => readonly SharedPlace[];
  /** Called about twice a second, while the store answers. */
  readonly tick: () => void;
}

/** Connection to other gateways. Nothing here throws, and no call waits for it. */
export interface HealthSharing {
  readonly isUp: boolean;
  tell(place: SharedPlace): void;
  /**
   * Asks to be the one gateway that finds out whether a place answers, for so many milliseconds. Resolves with 0 when it is, else with
   * how long another will be; undefined when nobody can be asked.
   */
  claim(name: PlaceName, lease: number): Promise<number | undefined>;
  release(name: PlaceName): void;
  close(): Promise<void>;
}

/** Last failure at a key or model. */
export interface Trouble {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly code: string;
  readonly message: string;
}
