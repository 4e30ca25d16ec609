import { TypedEmitter } from 'tiny-typed-emitter';
import type { GatewayError } from './errors.ts';
import type { Log } from '../log.ts';
import type { HealthChange } from './health.ts';

/** What parts of the gateway tell each other: once per call or rarer, never per event of a stream. */
export interface NoticeEvents {
  /** A channel could not serve an attempt. `call` is the call's id. */
  'attempt-failed': (notice: {
    readonly channel: string;
    readonly model: string;
    readonly error: GatewayError;
  }) => void;
  /** A model of a channel was found to refuse a member of requests, which is left out from now on. */
  'refusal-learned': (notice: { readonly channel: string; readonly model: string }) => void;
  /** A key of a channel, or one of its models, stands differently than before. */
  'health-changed': (change: HealthChange) => void;
  /** Channels serve other models than before, or a channel was switched off or on. */
  'models-changed': () => void;
  /** Work at the end of a call has thrown: a callback, an observer, or a plugin that records calls. The log says what. */
  'end-of-call-failed': () => void;
  /** A new configuration is in force. */
  reloaded: () => void;
  /** The gateway takes no more calls; those that run may finish. Whatever would hold a connection open for long ends now. */
  draining: () => void;
  /** No call runs any more, and everything is about to close. */
  closing: () => void;
}

/** An emitter whose listeners cannot harm who emits: what they throw is logged. */
export class Notices {
  readonly #emitter = new TypedEmitter<NoticeEvents>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
    this.#emitter.setMaxListeners(0);
  }

  /** Listens until the returned function is called. */
  on<Name extends keyof NoticeEvents>(name: Name, listener: NoticeEvents[Name]): () => void {
    const guarded = ((...values: unknown[]) => {
      try {
        (listener as (...values: unknown[]) => void)(...values);
      } catch (error) {
        this.#log.error({ notice: name, error }, 'a listener failed');
      }
    }) as NoticeEvents[Name];
    this.#emitter.on(name, guarded);
    return () => {
      this.#emitter.off(name, guarded);
    };
  }

  emit<Name extends keyof NoticeEvents>(name: Name, ...values: Parameters<NoticeEvents[Name]>): void {
    this.#emitter.emit(name, ...values);
  }
}
