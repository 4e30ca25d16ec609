/** The rounds of one call: sends the request to the model, runs the tools that it calls, and sends the next request with their results. */
import { concat, concatAll, concatMap, defer, from, type Observable } from 'rxjs';
import {
  sumUsage,
  type Call,
  type GatewayEvent,
  type Message,
  type Next,
  type PluginTools,
  type Usage,
} from 'sluice';
import type { ToolCatalog } from './catalog.ts';
import type { History } from './history.ts';
import type { Options } from './options.ts';
import type { McpRequest } from './requests/index.ts';
import { failure, runCalls, type CallResult, type RunContext, type ToolMeter } from './results.ts';
import { Round, type ModelCall, type RoundContext } from './round.ts';
import type { ReplyFormat } from './reply-formats.ts';

/** Options of the loop of one call. */
export interface LoopSpec {
  readonly call: Call;
  readonly next: Next;
  readonly request: McpRequest;
  readonly catalog: ToolCatalog;
  readonly history: History;
  readonly format: ReplyFormat;
  readonly options: Options;
  readonly ownTools: ReadonlySet<string>;
  readonly readsImages: boolean;
  readonly runTool: PluginTools['runTool'];
  ran(server: string, isFailed: boolean): void;
}

/** Endings after which calls may be incomplete. */
const cut = new Set(['length', 'context-window', 'content-filter', 'refusal', 'malformed']);

/** Runs the rounds. */
export class ToolLoop {
  readonly #spec: LoopSpec;
  readonly #meter: ToolMeter;
  readonly #context: RoundContext;
  readonly #run: RunContext;
  readonly #endsAt: number;
  #messages: readonly Message[];
  #rounds = 0;
  #blocks = 0;
  /** Usage of the rounds that have ended. */
  #spent: Usage | undefined;
  /** True when the text so far ends with that of an earlier round. */
  #hasText = false;
  #isHeaded = false;

  constructor(spec: LoopSpec) {
    const { call, options, catalog, ownTools, history, readsImages, runTool } = spec;
    this.#spec = spec;
    this.#messages = history.messages;
    this.#meter = { bytesLeft: options.maxTotalBytes, count: 0 };
    this.#context = { catalog, ownTools, nextBlock: () => (this.#blocks += 1) - 1 };
    const timeMs = Math.round(options.maxSeconds * 1000);
    this.#endsAt = performance.now() + timeMs;
    this.#run = {
      call,
      limits: options,
      meter: this.#meter,
      runTool,
      readsImages,
      signal: AbortSignal.any([call.signal, AbortSignal.timeout(timeMs)]),
      ran: (server, isFailed) => spec.ran(server, isFailed),
    };
  }

  /** Runs the calls that the client has approved, and sends the first request to the model. Rejects as that request does. */
  async begin(): Promise<Observable<GatewayEvent>> {
    const { catalog, history, format } = this.#spec;
    const listed = catalog.listed
      .filter(({ server }) => server.at !== undefined && !history.listedLabels.has(server.label))
      .flatMap((one) => format.listed(one));
    const approved = await this.#runApproved();
    return this.#round(await this.#send(), [...listed, ...approved]);
  }

  async #runApproved(): Promise<readonly GatewayEvent[]> {
    const { history, format, options } = this.#spec;
    const { approved } = history;
    if (approved.length === 0) return [];
    const most = Math.min(options.maxCallsPerRound, this.#callsLeft);
    const known = approved.flatMap(({ offered, input }, index) =>
      offered === undefined || index >= most ? [] : [{ offered, input }],
    );
    const results = await Promise.all(runCalls(known, this.#run));
    const events: GatewayEvent[] = [];
    const turns: Message[] = [];
    let next = 0;
    approved.forEach(({ request, offered, input }, index) => {
      if (offered === undefined || index >= most) {
        turns.push(
          resultMessage(request, '', failure('There is no such tool, or no further call is allowed.')),
        );
        return;
      }
      const result = results[next] ?? failure('The tool did not run.');
      next += 1;
      const shown = format.call({ offered, input, approval: request });
      for (const event of [...shown.begins, ...shown.ends(result)]) events.push(event);
      turns.push(resultMessage(request, offered.name, result));
    });
    this.#messages = withResults(this.#messages, turns);
    return events;
  }

  /** Tool calls that the client still allows. */
  get #callsLeft(): number {
    return (this.#spec.request.maxCalls ?? Infinity) - this.#meter.count;
  }

  #send(): Promise<Observable<GatewayEvent>> {
    const { call, next, request, catalog } = this.#spec;
    const functions = this.#callsLeft > 0 ? catalog.functions : [];
    const body = request.body(functions, (choice) => catalog.namesOf(choice), this.#rounds === 0);
    this.#rounds += 1;
    return next(call.with({ body, messages: this.#messages, decoded: true }));
  }

  /** Returns one response, followed by the rounds that result from it. `first`: events that precede all others. */
  #round(reply: Observable<GatewayEvent>, first: readonly GatewayEvent[] = []): Observable<GatewayEvent> {
    const round = new Round(this.#context);
    return concat(
      reply.pipe(concatMap((event) => this.#events(round, event, first))),
      defer(() => this.#after(round)),
    );
  }

  #events(round: Round, event: GatewayEvent, first: readonly GatewayEvent[]): readonly GatewayEvent[] {
    if (event.type === 'head') {
      if (this.#isHeaded) return [];
      this.#isHeaded = true;
      // `extra` describes the reply of one round, not the whole.
      const { extra: _, ...head } = event;
      return [head, ...first];
    }
    if (event.type === 'loss') return this.#isOfClient(event.loss.path) ? [event] : [];
    const seen = round.event(event);
    if (event.type === 'usage') return [{ type: 'usage', usage: this.#sum(event.usage) }];
    if (seen === undefined) return [];
    return this.#separated(seen);
  }

  /** Returns false for what the translation drops of functions and turns that the gateway has added. */
  #isOfClient(path: string): boolean {
    const [, tool] = /^tools\[(\d+)\]/.exec(path) ?? [];
    return this.#rounds === 1 && (tool === undefined || Number(tool) < this.#spec.request.ownTools);
  }

  /** Puts a blank line between the texts of two rounds, where a format makes one text of them. */
  #separated(event: GatewayEvent): readonly GatewayEvent[] {
    if (!this.#hasText || !this.#spec.format.joinsTexts || event.type !== 'text-delta' || event.text === '')
      return [event];
    this.#hasText = false;
    return [{ ...event, text: `\n\n${event.text}` }];
  }

  #sum(usage: Usage): Usage {
    return this.#spent === undefined ? usage : sumUsage(this.#spent, usage);
  }

  #after(round: Round): Observable<GatewayEvent> {
    const { format } = this.#spec;
    const calls = cut.has(round.reason) ? [] : round.calls;
    // A client that does not see the calls could not bring their results back: the model makes them again.
    if (calls.length === 0 || (round.callsClient && !format.showsCalls)) return from(this.#lastEvents(round));
    const open = this.#callsLeft;
    const { maxCallsPerRound } = this.#spec.options;
    const waiting = calls.filter(needsApproval);
    const wanted = calls.filter((one) => !needsApproval(one));
    const running = wanted
      .filter(({ offered }) => offered !== undefined)
      .slice(0, Math.min(maxCallsPerRound, open));
    const results = this.#results(running, wanted);
    const shown = running.map((one, index) => this.#shown(one, results.started[index]));
    return concat(
      from(shown).pipe(concatAll()),
      defer(() => from(Promise.all(results.all))).pipe(
        concatMap((all) => {
          if (round.callsClient || waiting.length > 0) return from(this.#lastEvents(round, waiting));
          this.#append(round, wanted, all);
          return this.#limitReached ? from(this.#limitEvents()) : this.#nextRound();
        }),
      ),
    );
  }

  /** Starts the calls that may run. `all` has a result for each wanted call, in order. */
  #results(running: readonly ModelCall[], wanted: readonly ModelCall[]) {
    const started = runCalls(
      running.flatMap(({ offered, input }) => (offered === undefined ? [] : [{ offered, input }])),
      this.#run,
    );
    const all = wanted.map(async (one) => {
      const index = running.indexOf(one);
      const own = index === -1 ? undefined : started[index];
      if (own !== undefined) return own;
      return failure(
        one.offered === undefined
          ? `There is no tool "${one.name.slice(0, 100)}".`
          : 'This call did not run, because too many calls were made.',
      );
    });
    return { started, all };
  }

  #shown({ offered, input }: ModelCall, result: Promise<CallResult> | undefined): Observable<GatewayEvent> {
    if (offered === undefined || result === undefined) return from([]);
    const events = this.#spec.format.call({ offered, input });
    return concat(from(events.begins), from(result).pipe(concatMap((given) => events.ends(given))));
  }

  /** Adds a round to the history. */
  #append(round: Round, calls: readonly ModelCall[], results: readonly CallResult[]): void {
    const turns = calls.map(({ id, name }, index) =>
      resultMessage(id, name, results[index] ?? failure('The tool did not run.')),
    );
    this.#messages = withResults([...this.#messages, round.message], turns);
    this.#spend(round);
    this.#hasText ||= round.speaks;
  }

  #spend({ usage }: Round): void {
    if (usage !== undefined) this.#spent = this.#sum(usage);
  }

  get #limitReached(): boolean {
    const { maxRounds } = this.#spec.options;
    return this.#rounds >= maxRounds || performance.now() >= this.#endsAt || this.#meter.bytesLeft <= 0;
  }

  #nextRound(): Observable<GatewayEvent> {
    return from(this.#send()).pipe(concatMap((reply) => this.#round(reply)));
  }

  /** Returns the last events of a response that the model has ended, or that the client must continue. */
  #lastEvents(round: Round, waiting: readonly ModelCall[] = []): readonly GatewayEvent[] {
    const requests = waiting.flatMap(({ offered, input }) =>
      offered === undefined ? [] : this.#spec.format.approval({ offered, input }),
    );
    const { finish } = round;
    if (finish === undefined) return requests;
    const { extra: _, ...last } = finish;
    const isClients = round.callsClient || last.reason !== 'tool-calls';
    return [...requests, isClients ? last : { type: 'finish', choice: 0, reason: 'stop' }];
  }

  /** Returns the last events of a response that a limit has ended. */
  #limitEvents(): readonly GatewayEvent[] {
    return [{ type: 'finish', choice: 0, ...this.#spec.format.limit }];
  }
}

function needsApproval({ offered }: ModelCall): boolean {
  return offered?.needsApproval === true;
}

function resultMessage(id: string, name: string, { content, isFailed }: CallResult): Message {
  return {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        id,
        ...(name === '' ? {} : { name }),
        content,
        ...(content.length === 1 && content[0]?.type === 'text' ? { plain: true } : {}),
        ...(isFailed ? { failed: true } : {}),
      },
    ],
  };
}

/** Adds results behind the turns that they belong to. */
function withResults(messages: readonly Message[], results: readonly Message[]): readonly Message[] {
  return [...messages, ...results];
}
