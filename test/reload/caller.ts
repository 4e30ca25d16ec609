import { Agent, request as send, type IncomingMessage } from 'node:http';
import { setTimeout as pass } from 'node:timers/promises';
import { key, type OperatedGateway } from './gateway.ts';

/** Calls of a client, and what went wrong with them. */
export interface CallerOutcome {
  readonly calls: number;
  readonly failures: readonly string[];
  readonly marks: ReadonlySet<string>;
}

/** A client that makes one small call after the other, each over a connection of its own or all over one that is kept. */
export class Caller {
  readonly #gateway: Pick<OperatedGateway, 'url'>;
  readonly #agent: Agent | false;
  readonly #failures: string[] = [];
  readonly #marks = new Set<string>();
  #calls = 0;
  #stopped = false;
  readonly #over: Promise<void>;

  constructor(gateway: Pick<OperatedGateway, 'url'>, keepsConnection: boolean) {
    this.#gateway = gateway;
    this.#agent = keepsConnection ? new Agent({ keepAlive: true, maxSockets: 1 }) : false;
    this.#over = this.#run();
  }

  /** Resolves when a call was answered by this version of the plugin. */
  async sees(mark: string): Promise<void> {
    while (!this.#marks.has(mark) && this.#failures.length === 0) await pass(20);
  }

  async stop(): Promise<CallerOutcome> {
    this.#stopped = true;
    await this.#over;
    if (this.#agent !== false) this.#agent.destroy();
    return { calls: this.#calls, failures: this.#failures, marks: this.#marks };
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#calls += 1;
      try {
        await this.#call();
      } catch (error) {
        this.#failures.push(`a call failed: ${error instanceof Error ? error.message : String(error)}`);
      }
      await pass(5);
    }
  }

  async #call(): Promise<void> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      send(`${this.#gateway.url}/v1/chat/completions`, {
        method: 'POST',
        agent: this.#agent,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      })
        .once('response', resolve)
        .once('error', reject)
        .end(JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] }));
    });
    let text = '';
    response.setEncoding('utf8');
    for await (const chunk of response) text += chunk as string;
    if (response.statusCode !== 200 || !text.includes('You said'))
      throw new Error(`status ${response.statusCode}: ${text.slice(0, 200)}`);
    const mark = response.headers['x-mark'];
    if (typeof mark === 'string') this.#marks.add(mark);
  }
}
