import { setImmediate } from 'node:timers/promises';
import { from, type Observable } from 'rxjs';
import type { z } from 'zod';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import { Exchange } from '../../core/call/exchange.ts';
import { firstView } from '../../core/call/view.ts';
import { type Call, type CallEdits } from '../../core/sdk/call.ts';
import type { Codec, Operation } from '../../core/sdk/format.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { caller } from '../../core/sdk/caller.ts';
import { EndedCalls } from '../../core/money/account/ended-calls.ts';
import { accounted } from '../../core/money/account/followed.ts';
import { accountOf } from '../../core/money/account/index.ts';
import type { AccountServices } from '../../core/money/account/services.ts';
import type { Bookkeeper } from '../../core/money/ledger/index.ts';
import type { InternalTools } from '../../core/config/internal-tools.ts';
import { definePlugin, type Handler, type Next, type PluginSpec } from '../../core/sdk/define.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { Next as AuthorNext } from '../../core/sdk/author/plugin.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import { all } from '../support/call.ts';
import { allFormats } from '../support/fixtures.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import type { Work } from './measure.ts';
import { replyShapes } from './replies.ts';
import type { ChatFormat } from './requests.ts';

const formats = await allFormats();
const paths = { chat: '/v1/chat', compact: '/v1/responses/compact', 'list-models': '/v1/models' } as const;

/** Call that a plugin handles in the benchmark. */
export interface BenchCall {
  readonly format: ChatFormat | 'text-completions';
  readonly body: JsonObject;
  readonly operation?: keyof typeof paths;
  readonly model?: string;
  readonly stream?: boolean;
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly key?: Partial<ApiKey>;
  readonly edits?: CallEdits;
  /** True for plugins that run for each attempt: a target is chosen. */
  readonly attempt?: boolean;
}

/** Returns the body as a client sends it. */
function written({ format, body, model = format, stream = false }: BenchCall): JsonObject {
  return format === 'generate-content' ? body : { ...body, model, stream };
}

/** A gateway whose parts the plugins get, each of them set up anew. Close it. */
export class PluginBench {
  readonly #gateway: TestGateway;
  readonly #key: ApiKey;
  readonly tools: InternalTools;

  private constructor(gateway: TestGateway, key: ApiKey, tools: InternalTools) {
    this.#gateway = gateway;
    this.#key = key;
    this.tools = tools;
  }

  static async start(): Promise<PluginBench> {
    let given: InternalTools | undefined;
    const borrowing = definePlugin({
      name: 'borrowing',
      stage: 'observe',
      setup(_, tools) {
        given = tools as InternalTools;
        return (call, next) => next(call);
      },
    });
    const baseUrl = 'http://127.0.0.1:1';
    const keys = ['k', 'l'];
    const gateway = await startGateway({
      channels: [
        openai({ keys, baseUrl, models: ['m', 'chat', 'chat-completions'], priority: 2 }),
        openai({
          id: 'of-responses',
          keys,
          baseUrl,
          models: ['responses'],
          traits: { responses: { formats: ['responses'] } },
        }),
        anthropic({ keys, baseUrl, models: ['messages'], traits: { messages: { prefill: true } } }),
        gemini({ keys, baseUrl, models: ['generate-content'] }),
        openrouter({ key: 'k', baseUrl, models: ['routed'] }),
      ],
      prices: { '*': { input: 1, output: 1 } },
      plugins: [borrowing()],
    });
    const made = await gateway.apiKeys.create({ name: 'measured' });
    if (given === undefined) throw new Error('No plugin was set up.');
    return new PluginBench(gateway, made.record, given);
  }

  close(): Promise<void> {
    return this.#gateway.close();
  }

  /** Drops the log's lines. */
  forgetLines(): Promise<void> {
    return this.#gateway.forgetLines();
  }

  /** The caller's secret, as `auth` wants it. */
  get secret(): string {
    return this.#gateway.key;
  }

  /** Creates a call; equal calls share their bytes. The caller ends it. */
  call(
    input: BenchCall,
    bytes = Buffer.from(JSON.stringify(written(input))),
  ): { readonly call: Call; end(): void } {
    const { format: name, operation = 'chat', stream = false, edits = {}, attempt = false } = input;
    const format = formats.find((one) => one.name === name);
    const codec = (format?.codecs[operation as Operation] ?? format?.codecs.chat) as Codec | undefined;
    if (format === undefined || codec === undefined) throw new Error(`no ${operation} in ${name}`);
    const model = input.model ?? name;
    const exchange = new Exchange('req_1', operation as Operation, format, codec, {
      method: 'POST',
      path: paths[operation],
      query: new URLSearchParams(input.query),
      headers: { ...input.headers },
      params: name === 'generate-content' ? { model, stream } : {},
      ip: '192.0.2.7',
      bytes: Buffer.alloc(0),
      body: undefined,
    });
    exchange.understand(bytes, written(input));
    exchange.values.set(caller, { ...this.#key, ...input.key });
    const [target] = this.tools.catalog.targets(model);
    const whole = firstView(exchange);
    const call = whole.with({ ...edits, ...(attempt && target !== undefined ? { target } : {}) });
    return { call, end: () => exchange.end() };
  }
}

/** Result of `definePlugin`. */
export type Definition<Schema extends z.ZodType> = { readonly spec: PluginSpec<Schema> };

/** Replies of the next handler, in order; the last one repeats. */
export type Replies = readonly Observable<GatewayEvent>[];

/** Input of a plugin. `bytes`: number of bytes that the plugin reads. */
export interface Case {
  readonly bytes: number;
  readonly input: BenchCall;
  readonly replies?: Replies;
}

/** A reply of a few words. */
export const shortReply = replyShapes.find(({ name }) => name === 'tiny pieces of text')?.make(1) ?? [];

/**
 * One plugin alone, set up once: a call through it, its reply read to the end, and the work of the next turn, such as the call's record.
 * Refusals are replies too. Nothing is charged.
 */
export function row<Schema extends z.ZodType>(
  bench: PluginBench,
  plugin: Definition<Schema>,
  options: z.input<Schema> | undefined,
  shape: string,
  make: (size: number) => Case | Promise<Case>,
  more: Partial<Work> = {},
): Work {
  let ready: Promise<ReadyPlugin> | undefined;
  return {
    part: `plugin: ${plugin.spec.name}`,
    shape,
    oneStep: false,
    ...more,
    make: (size) => {
      const made = Promise.resolve(make(size));
      let bytes = 0;
      const wire = made.then((one) => {
        bytes = one.bytes;
        return Buffer.from(JSON.stringify(written(one.input)));
      });
      return {
        get bytes() {
          return bytes;
        },
        async run() {
          const { input: benchCall, replies = [from(shortReply)] } = await made;
          const { handle } = await (ready ??= setUp(plugin, bench.tools, options));
          const { call, end } = bench.call(benchCall, await wire);
          let index = 0;
          const answer: Next = async () => replies[Math.min(index++, replies.length - 1)] ?? from(shortReply);
          // As the core does behind the last of the plugins that run once for a call.
          const next: Next = (sent) => accountOf(sent).send(sent, answer);
          const answered = accounted(services(bench.tools), (whole) => handle(whole, next));
          try {
            return await all(await answered(call));
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error;
            return undefined;
          } finally {
            end();
            await setImmediate();
          }
        },
      };
    },
    async close() {
      const plugged = await ready;
      ready = undefined;
      await plugged?.close();
      await bench.forgetLines();
    },
  };
}

const ended = new EndedCalls();

/** Services for accounts of calls. */
function services({ bookkeeper, prices }: InternalTools): AccountServices {
  return {
    bookkeeper: withoutBooks(bookkeeper),
    prices,
    ended,
    report: (error) => {
      throw error;
    },
  };
}

/** A plugin that was set up. */
interface ReadyPlugin {
  readonly handle: Handler;
  close(): Promise<void>;
}

/** Sets a plugin up with options as an operator would write them. */
async function setUp<Schema extends z.ZodType>(
  { spec }: { readonly spec: PluginSpec<Schema> },
  tools: InternalTools,
  options: z.input<Schema> | undefined,
): Promise<ReadyPlugin> {
  const closing: (() => unknown)[] = [];
  const parsed = spec.options?.parse(options ?? {});
  const own: InternalTools = {
    ...tools,
    bookkeeper: withoutBooks(tools.bookkeeper),
    // A plugin is set up once for each row.
    metrics: { counter: () => ({ add() {} }), all: () => [] },
    onClose: (close) => void closing.push(close),
  };
  const handler = await spec.setup(parsed as z.output<Schema>, own);
  return {
    handle: async (call, next) => handler(call, next as AuthorNext),
    close: async () => {
      for (const close of closing.toReversed()) await close();
    },
  };
}

/** A bookkeeper that writes no records: those of all runs would fill the memory. */
function withoutBooks(bookkeeper: Bookkeeper): Bookkeeper {
  return {
    full: false,
    waiting: 0,
    reserve: (...reservation) => bookkeeper.reserve(...reservation),
    release: (reservation) => bookkeeper.release(reservation),
    watch: (reservation) => bookkeeper.watch(reservation),
    close: async () => {},
    enqueue({ reservation }) {
      if (reservation !== undefined) bookkeeper.release(reservation);
    },
  };
}
