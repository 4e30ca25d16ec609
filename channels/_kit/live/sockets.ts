/**
 * Runs a session of OpenAI's Realtime API over connections to Gemini's Live API, and resumes it on a new one when the provider ends a
 * connection.
 */
import {
  concatMap,
  defer,
  EMPTY,
  finalize,
  merge,
  mergeMap,
  of,
  startWith,
  Subject,
  switchMap,
  takeWhile,
  type Observable,
} from 'rxjs';
import {
  GatewayError,
  isObject,
  parseObject,
  type GatewayEvent,
  type JsonObject,
  type Log,
  type Call,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import type { SocketMessage } from 'sluice/channel-kit';
import { requireConversation } from '../http/realtime.ts';
import { LiveSession } from './session.ts';
import type { LiveModel } from './settings.ts';
import type { LiveStep } from './step.ts';
import { LiveWatch } from './watch.ts';

/** Address, headers and model names of a provider's Live API. */
export interface LiveAddress {
  url(call: Call): string;
  headers(call: Call): Readonly<Record<string, string>>;
  resource(model: string): string;
  readonly refusesCallIds?: boolean;
}

/** Returns the parts of a channel that open and watch sessions: https://ai.google.dev/api/live */
export function liveSessions(
  address: LiveAddress,
  { sockets, log }: Pick<ChannelTools, 'sockets' | 'log'>,
): Pick<ChannelParts, 'connect' | 'watch'> {
  return {
    watch: (answers) => new LiveWatch(answers),
    async connect(call, request) {
      requireConversation(call, request);
      const { model, headers, query } = request;
      if (query['intent'] !== undefined || headers['openai-beta'] !== undefined)
        throw new GatewayError(
          'invalid_value',
          'Sessions of this model have the realtime protocol of general availability: open one with ?model=… and without openai-beta.',
        );
      const { refusesCallIds } = address;
      const liveModel: LiveModel = {
        model,
        resource: address.resource(model),
        ...(refusesCallIds === undefined ? {} : { refusesCallIds }),
      };
      const dial: Dial = (input) =>
        sockets.connect(call.with({ input }), { url: address.url(call), headers: address.headers(call) });
      return new LiveConnection(call, new LiveSession(call.id, liveModel), dial, log).open();
    },
  };
}

/** Opens a connection that sends the messages of `input`. */
type Dial = (input: Observable<SocketMessage>) => Promise<Observable<GatewayEvent>>;

/** Session over consecutive connections. The provider ends each after some minutes, and the next one resumes the session. */
class LiveConnection {
  readonly #call: Call;
  readonly #session: LiveSession;
  readonly #dial: Dial;
  readonly #log: Log;
  /** The connections, of which the last one is read. */
  readonly #connections = new Subject<Observable<GatewayEvent>>();
  #outgoing = new Subject<SocketMessage>();
  /** True when the provider has accepted the settings. Until then messages are held, and the client is not read. */
  #isReady = false;
  #waits = false;
  #held: JsonObject[] = [];
  /** Handle with which a new connection resumes the session. */
  #handle: string | undefined;
  #isEnding = false;
  /** Connections so far, and those of them in a row that ended soon and over which nothing came for the client. */
  #dialled = 1;
  #dialledAt = performance.now();
  #fruitless = 0;

  constructor(call: Call, session: LiveSession, dial: Dial, log: Log) {
    this.#call = call;
    this.#session = session;
    this.#dial = dial;
    this.#log = log;
  }

  async open(): Promise<Observable<GatewayEvent>> {
    const first = await this.#dial(this.#outgoing);
    return merge(
      of(shown(this.#session.created)),
      this.#connections.pipe(
        startWith(first),
        switchMap((connection) => connection),
        concatMap((event) => this.#fromProvider(event)),
      ),
      (this.#call.input ?? EMPTY).pipe(concatMap((message) => this.#fromClient(message))),
    ).pipe(
      takeWhile((event) => event.type !== 'message' || event.close === undefined, true),
      finalize(() => this.#goOn()),
    );
  }

  #fromClient(message: SocketMessage): readonly GatewayEvent[] {
    if (message.close !== undefined) {
      this.#outgoing.next(message);
      return [];
    }
    const event = message.binary ? undefined : parseObject(message.data.toString());
    if (event !== undefined) return this.#take(this.#session.fromClient(event));
    const error = new GatewayError('invalid_request', 'The message is not a JSON object.');
    return [shown(this.#session.failure(error, undefined))];
  }

  #fromProvider(event: GatewayEvent): readonly GatewayEvent[] {
    if (event.type !== 'message') return [];
    if (event.close !== undefined) return this.#closed(event.close, event.data);
    // Its JSON comes in binary messages: @google/genai 2.32.0, dist/node/index.mjs, `handleWebSocketMessage`.
    const message = parseObject(event.data.toString());
    if (message === undefined) return [];
    const { setupComplete, sessionResumptionUpdate: update, goAway } = message;
    if (setupComplete !== undefined) this.#ready();
    if (isObject(update)) this.#remember(update);
    const events = this.#take(this.#session.fromProvider(message));
    if (events.length > 0) this.#fruitless = 0;
    if (goAway !== undefined) this.#isEnding = true;
    const isOver = this.#isEnding && this.#isReady && !this.#session.isBusy;
    if (isOver && this.#handle !== undefined && this.#mayResume()) this.#resume();
    return events;
  }

  #remember({ newHandle: handle, resumable }: JsonObject): void {
    if (resumable === true && typeof handle === 'string' && handle.length <= longestHandle)
      this.#handle = handle;
  }

  #take({ toProvider = [], toClient = [], usage }: LiveStep): readonly GatewayEvent[] {
    for (const message of toProvider) this.#send(message);
    return [
      ...(usage === undefined ? [] : [{ type: 'usage', usage, part: usage } as const]),
      ...toClient.map(shown),
    ];
  }

  #send(message: JsonObject): void {
    if (this.#isReady) {
      this.#write(message);
      return;
    }
    this.#held.push(message);
    if (this.#session.isSetUp) return;
    this.#wait();
    this.#write(this.#session.setup());
  }

  #write(message: JsonObject): void {
    this.#outgoing.next({ data: Buffer.from(JSON.stringify(message)), binary: false });
  }

  #ready(): void {
    this.#isReady = true;
    const held = this.#held;
    this.#held = [];
    for (const message of held) this.#write(message);
    this.#goOn();
  }

  #wait(): void {
    if (this.#waits) return;
    this.#waits = true;
    this.#call.inputGate.close();
  }

  #goOn(): void {
    if (!this.#waits) return;
    this.#waits = false;
    this.#call.inputGate.open();
  }

  /** Returns false when the provider ends connections without using them: the one that there is stays until the provider closes it. */
  #mayResume(): boolean {
    return this.#fruitless < mostFruitless && this.#dialled < mostConnections;
  }

  /** Goes on over a new connection, with the same settings: https://ai.google.dev/gemini-api/docs/live-session */
  #resume(): void {
    const handle = this.#handle;
    const outgoing = new Subject<SocketMessage>();
    const now = performance.now();
    this.#fruitless = now - this.#dialledAt < soonMs ? this.#fruitless + 1 : 0;
    this.#dialled += 1;
    this.#dialledAt = now;
    this.#handle = undefined;
    this.#isEnding = false;
    this.#isReady = false;
    this.#wait();
    this.#outgoing = outgoing;
    this.#connections.next(
      defer(() => this.#dial(outgoing)).pipe(
        mergeMap((events) =>
          merge(
            events,
            defer(() => {
              this.#write(this.#session.setup(handle));
              return EMPTY;
            }),
          ),
        ),
      ),
    );
  }

  #closed(code: number, reason: Buffer): readonly GatewayEvent[] {
    if (code !== 1000 && this.#handle !== undefined && this.#isEnding && this.#mayResume()) {
      this.#resume();
      return [];
    }
    const text = reason.toString();
    const data = credential.test(text) ? Buffer.alloc(0) : reason;
    const last: GatewayEvent = { type: 'message', data, binary: false, close: code };
    if (code === 1000) return [last];
    this.#log.warn({ code, reason: text }, 'the provider ended a Live session');
    return [shown(this.#session.failure(closeError(code, text), undefined)), last];
  }
}

/** Returns an event for the client, as a message of its socket. */
function shown(event: JsonObject): GatewayEvent {
  return { type: 'message', data: Buffer.from(JSON.stringify(event)), binary: false };
}

const longestHandle = 4096;
/** Maximum number of consecutive connections that last less than {@link soonMs} and carry nothing for the client. */
const mostFruitless = 3;
const soonMs = 60_000;
/** Maximum number of connections of one session. The provider closes each after about ten minutes. */
const mostConnections = 500;

/** Words about the channel's account, which clients must not see. */
const credential = /api[ _-]?key|credential|permission|billing|quota|project/i;

function closeError(code: number, reason: string): GatewayError {
  const isRefused = (code === 1007 || code === 1008) && !credential.test(reason);
  return isRefused
    ? new GatewayError(
        'invalid_value',
        `The provider has ended the session: ${reason || 'it gave no reason'}`,
      )
    : new GatewayError('upstream_error', 'The provider has ended the session.', { origin: 'upstream' });
}
