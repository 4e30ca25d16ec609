/** The record of a call in the usage log, and the amounts that are charged. */
import type { FailureCause } from './event.ts';
import type { JsonObject } from './json.ts';
import type { Units } from './usage.ts';

/** Charged amounts: micro-dollars (integers) and tokens. */
export interface Amounts {
  readonly microDollars: number;
  readonly tokens: number;
}

/** One call as the usage log keeps it. Members that do not apply are absent. */
export interface UsageRecord {
  /** The call's id: `req_…`. */
  readonly id: string;
  /** Milliseconds since 1970: when the call came in. */
  readonly at: number;
  readonly keyId?: string;
  /** Ids of the owners of the key at the time of the call. */
  readonly team?: string;
  readonly member?: string;
  readonly organisation?: string;
  readonly ip: string;
  readonly operation: string;
  /** The client's format, and the one spoken to the channel. */
  readonly format: string;
  readonly upstreamFormat?: string;
  /** Model that the client requested, and its name at the provider. */
  readonly model: string;
  readonly upstreamModel?: string;
  readonly channel?: string;
  readonly stream: boolean;
  readonly passThrough?: boolean;
  /** The status that the client saw; 499 when it left before there was one. */
  readonly status: number;
  /** Our error code, when it failed. */
  readonly code?: string;
  /** The sentence of the failure, secrets masked. */
  readonly reason?: string;
  /**
   * Cause of the failure, with masked secrets: the provider's HTTP status, and the error message of the provider, of the service that
   * issues credentials, or of the connection. At most 1,000 characters.
   */
  readonly cause?: FailureCause;
  /** `interrupted`: it failed after the client had seen a part of the reply, and with it the status of a success. */
  readonly ended: 'complete' | 'error' | 'left' | 'interrupted';
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  /** Usage that is not counted in tokens. */
  readonly units?: Units;
  /** True when the gateway estimated the usage. */
  readonly estimated?: boolean;
  /** Absent when the model has no price. */
  readonly microDollars?: number;
  /** Charge to budgets, if the price rule of a team or organisation makes it differ from the cost, `microDollars`. */
  readonly chargedMicroDollars?: number;
  /** Tags of the key, and those that the call brought. */
  readonly tags?: readonly string[];
  /** The end user that the call names: at most 128 characters, of a longer name a hash. */
  readonly endUser?: string;
  /** The price that was used, as it stood in the table at that time. */
  readonly price?: JsonObject;
  /** Milliseconds of the whole call, until the first byte for the client, and of the gateway before the first request to a provider. */
  readonly ms: number;
  readonly firstMs?: number;
  readonly gatewayMs?: number;
  readonly losses?: readonly string[];
  /**
   * Failed attempts: `channel`, `key` (its id), `model`, `failure`, and `cause` as above. If `failure` is `hedged`, a parallel attempt was
   * faster; `input` then has the estimated input of both.
   */
  readonly attempts?: readonly JsonObject[];
  /** Bodies, when the operator has them captured; redacted. */
  readonly request?: string;
  readonly response?: string;
}
