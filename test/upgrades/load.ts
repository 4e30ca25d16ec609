/** Mixed calls of clients at a steady rate, for long runs: whole replies, streams, turns of agents, and clients that leave. */
import { setTimeout as pause } from 'node:timers/promises';
import { voices } from '../reload/streams.ts';

type Json = Readonly<Record<string, unknown>>;

/** Callers, target and rate of the load. */
export interface LoadPlan {
  readonly url: string;
  /** Secrets of keys that may call. */
  readonly keys: readonly string[];
  /** Things that clients begin in a second; some of them are several calls. */
  readonly rate: number;
  /** Model that whole replies and streams come from. Default: the demo. */
  readonly model?: string;
  /** Things that clients do, as often as they stand here. Default: of each kind some. */
  readonly activities?: readonly Activity[];
}

type Activity = 'whole' | 'stream' | 'agent' | 'conversation' | 'leave' | 'stranger';

const mixed: readonly Activity[] = [
  ...Array.from({ length: 8 }, () => 'whole' as const),
  ...Array.from({ length: 5 }, () => 'stream' as const),
  ...Array.from({ length: 3 }, () => 'agent' as const),
  ...Array.from({ length: 2 }, () => 'conversation' as const),
  'leave',
  'stranger',
];

/** Maximum number of things that run at once. More are left out and counted as late. */
const mostAtOnce = 100;
const mostFailures = 20;

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const question = { role: 'user', content: 'What is the weather?' };

/** Clients that call until they are told to stop. */
export class Load {
  /** Calls with each key that were answered from their first byte on. */
  readonly calls: number[];
  /** Things that clients did, by kind. */
  readonly done: Record<string, number> = {};
  readonly failures: string[] = [];
  failed = 0;
  /** Things that were not begun because too many others ran. */
  late = 0;
  readonly #plan: LoadPlan;
  #times: number[] = [];
  #counter = 0;
  #isStopped = false;
  readonly #running = new Set<Promise<void>>();
  readonly #over: Promise<void>;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.calls = plan.keys.map(() => 0);
    this.#over = this.#run();
  }

  /** Milliseconds of each whole reply since the last look, in order. */
  takeTimes(): readonly number[] {
    const times = this.#times.toSorted((one, other) => one - other);
    this.#times = [];
    return times;
  }

  /** Resolves when everything that was begun has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#over;
    await Promise.all(this.#running);
  }

  async #run(): Promise<void> {
    let due = performance.now();
    while (!this.#isStopped) {
      due = Math.max(due, performance.now() - 1_000) + 1_000 / this.#plan.rate;
      await pause(Math.max(0, due - performance.now()));
      if (this.#running.size >= mostAtOnce) this.late += 1;
      else this.#begin();
    }
  }

  #begin(): void {
    const { activities: doings = mixed } = this.#plan;
    const number = (this.#counter += 1);
    // Coprime steps, so that each kind meets each format and each key.
    const kind = doings[(number * 7) % doings.length] ?? 'whole';
    const key = number % this.#plan.keys.length;
    const running = this.#runActivity(kind, number, key)
      .catch((error: unknown) => this.#fail(`${kind} ${number}: ${String(error)}`))
      .finally(() => {
        this.done[kind] = (this.done[kind] ?? 0) + 1;
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  #runActivity(kind: Activity, number: number, key: number): Promise<void> {
    switch (kind) {
      case 'whole':
        return this.#whole(number, key);
      case 'stream':
        return this.#stream(number, key);
      case 'agent':
        return this.#agent(key);
      case 'conversation':
        return this.#conversation(key);
      case 'leave':
        return this.#leave(number, key);
      case 'stranger':
        return this.#stranger(number);
    }
  }

  async #whole(turn: number, key: number): Promise<void> {
    const voice = voices[turn % voices.length] ?? voices[0]!;
    const began = performance.now();
    const path = this.#path(voice.path).replace('streamGenerateContent?alt=sse', 'generateContent');
    const { stream: _, ...body } = this.#body(voice.body('Hello'));
    const text = await this.#sendRequest(key, path, body, voice.headers);
    this.#times.push(performance.now() - began);
    if (!text.includes('You said')) throw new Error(`no reply of the demo: ${text.slice(0, 200)}`);
  }

  async #stream(turn: number, key: number): Promise<void> {
    const voice = voices[turn % voices.length] ?? voices[0]!;
    const body = this.#body(voice.body(`!chunks=${5 + (turn % 30)}`));
    const text = await this.#sendRequest(key, this.#path(voice.path), body, voice.headers);
    const frames = text.split('\n').filter((line) => line.startsWith('data: {'));
    const isWhole = frames.some((line) => voice.isEnd(JSON.parse(line.slice(6)) as Json));
    if (!isWhole) throw new Error(`not whole: ${text.slice(-200)}`);
  }

  /** Two turns: the model calls a tool, and gets the result. */
  async #agent(key: number): Promise<void> {
    const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
    const path = '/v1/chat/completions';
    const first = JSON.parse(
      await this.#sendRequest(key, path, { model: 'demo', messages: [question], tools }),
    ) as {
      readonly choices: readonly {
        readonly message: { readonly tool_calls?: readonly { readonly id: string }[] };
      }[];
    };
    const message = first.choices[0]?.message;
    const id = message?.tool_calls?.[0]?.id;
    if (id === undefined) throw new Error(`no tool call: ${JSON.stringify(first).slice(0, 200)}`);
    const messages = [question, message, { role: 'tool', tool_call_id: id, content: 'Rain' }];
    await this.#sendRequest(key, path, { model: 'demo', messages, tools });
  }

  /** Two turns whose first is kept by the gateway. */
  async #conversation(key: number): Promise<void> {
    const path = '/v1/responses';
    const { id } = JSON.parse(
      await this.#sendRequest(key, path, { model: 'demo', input: 'Remember 42.' }),
    ) as Json;
    await this.#sendRequest(key, path, { model: 'demo', input: 'And?', previous_response_id: id });
  }

  /** A client that leaves in the middle of a stream. */
  async #leave(turn: number, key: number): Promise<void> {
    const voice = voices[turn % voices.length] ?? voices[0]!;
    const response = await this.#send(key, voice.path, voice.body('!chunks=200'), voice.headers);
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
  }

  async #stranger(turn: number): Promise<void> {
    const voice = voices[turn % voices.length] ?? voices[0]!;
    const response = await fetch(`${this.#plan.url}${voice.path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-unknown', 'content-type': 'application/json', ...voice.headers },
      body: JSON.stringify(voice.body('Hello')),
    });
    await response.text();
    if (response.status !== 401 && response.status !== 429)
      throw new Error(`an unknown key: ${response.status}`);
  }

  #path(path: string): string {
    return path.replace('/demo:', `/${this.#plan.model ?? 'demo'}:`);
  }

  #body(body: Json): Json {
    return 'model' in body ? { ...body, model: this.#plan.model ?? 'demo' } : body;
  }

  async #sendRequest(key: number, path: string, body: object, headers: object = {}): Promise<string> {
    return (await this.#send(key, path, body, headers)).text();
  }

  async #send(key: number, path: string, body: object, headers: object): Promise<Response> {
    const response = await fetch(`${this.#plan.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#plan.keys[key]}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    });
    if (response.status !== 200)
      throw new Error(`${path}: ${response.status} ${(await response.text()).slice(0, 300)}`);
    this.calls[key] = (this.calls[key] ?? 0) + 1;
    return response;
  }

  #fail(sentence: string): void {
    this.failed += 1;
    if (this.failures.length < mostFailures) this.failures.push(sentence);
  }
}
