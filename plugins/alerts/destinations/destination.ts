/** Contract of the destinations of alerts. */
import type { Services } from 'sluice';
import type { Message } from '../alert.ts';

/** Time limits of a delivery. */
export interface Deadline {
  /** Milliseconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Parts that destinations work with. */
export interface DestinationTools {
  readonly http: Services;
  /** Base URL of the gateway. */
  readonly url?: string | undefined;
  readonly timeout: number;
}

/** A destination that takes messages. */
export interface OpenDestination {
  /** True: one message for each alert. */
  readonly takesOne?: boolean;
  /** Rejects with a sentence that has no secret. */
  send(message: Message, deadline: Deadline): Promise<void>;
  close?(): void;
}
