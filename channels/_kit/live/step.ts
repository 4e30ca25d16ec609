import type { JsonObject, Usage } from 'sluice';

/** What one message of either side leads to. */
export interface LiveStep {
  readonly toProvider?: readonly JsonObject[];
  readonly toClient?: readonly JsonObject[];
  /** Tokens that no event for the client tells. */
  readonly usage?: Usage;
}
