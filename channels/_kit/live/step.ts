import type { JsonObject, Usage } from 'sluice';

/** Messages and usage that result from one message of either side. */
export interface LiveStep {
  readonly toProvider?: readonly JsonObject[];
  readonly toClient?: readonly JsonObject[];
  /** Tokens that no event reports to the client. */
  readonly usage?: Usage;
}
