/** Event emitter for notices between parts of the gateway, such as failed attempts, reloads and shutdown. */
import { TypedEmitter } from 'tiny-typed-emitter';
import type { GatewayError } from './errors.ts';
import type { Log } from '../log.ts';
import type { HealthChange } from './health.ts';

/** Notices by name. Emitted once per call or less often, never per event of a stream. */
export interface NoticeEvents {
  /** A channel could not serve an attempt. `call` is the call's id. */
  'attempt-failed': (notice: {
    readonly channel: string;
    readonly model: string;
    readonly error: GatewayError;
  }) => void;
  /** A model of a channel was found to refuse a member of requests, which is left out from now on. */
  'refusal-learned': (notice: { readonly channel: string; readonly model: string }) => void;
  /** The state of a key of a channel, or of one of its models, has changed. */
  'health-changed': (change: HealthChange) => void;
  /** Channels serve other models than before, or a channel was switched off or on. */
  'models-changed': () => void;
  /** Work at the end of a call has thrown: a callback, an observer, or a plugin that records calls. The log says what. */
  'end-of-call-failed': () => void;
  /** A new configuration is in force. */
  reloaded: () => void;
  /** The gateway accepts no more calls; running ones may finish. Listeners end whatever would hold a connection open for long. */
  draining: () => void;
  /** No call runs any more, and everything is about to close. */
  closing: () => void;
}

/** Emitter that catches and logs the errors of its listeners. */
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
