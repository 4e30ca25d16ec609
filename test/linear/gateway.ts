import { Worker } from 'node:worker_threads';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import type { InternalTools } from '../../core/config/internal-tools.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { definePlugin } from '../../core/sdk/define.ts';
import channelLimits from '../../plugins/channel-limits.ts';
import continuation from '../../plugins/continuation/index.ts';
import modelLimits from '../../plugins/model-limits.ts';
import usageLog from '../../plugins/usage-log/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import type { Work } from './measure.ts';
import { replyShapes } from './replies.ts';
import { chatFormats, requestShapes, type ChatFormat } from './requests.ts';

/** A gateway with every plugin on, in front of a provider of each format. Close it. */
export class MeasuredGateway {
  readonly #gateway: TestGateway;
  readonly #provider: Worker;
  readonly #tools: InternalTools;

  private constructor(gateway: TestGateway, provider: Worker, tools: InternalTools) {
    this.#gateway = gateway;
    this.#provider = provider;
    this.#tools = tools;
  }

  static async start(): Promise<MeasuredGateway> {
    const provider = new Worker(new URL('./provider.ts', import.meta.url), { execArgv: [] });
    const port = await new Promise<number>((resolve, reject) => {
      provider.once('message', resolve);
      provider.once('error', reject);
    });
    const baseUrl = `http://127.0.0.1:${port}`;
    let given: InternalTools | undefined;
    const borrowing = definePlugin({
      name: 'borrowing',
      stage: 'observe',
      setup(_, tools) {
        given = tools as InternalTools;
        return (call, next) => next(call);
      },
    });
    const speaks = (format: string) => ({ formats: [format] });
    const gateway = await startGateway({
      channels: [
        openai({
          id: 'chat',
          key: 'k',
          baseUrl: `${baseUrl}/v1`,
          models: ['to-chat-completions', 'to-responses'],
          traits: { 'to-chat-completions': speaks('chat-completions'), 'to-responses': speaks('responses') },
        }),
        anthropic({ key: 'k', baseUrl: `${baseUrl}/v1`, models: ['to-messages'] }),
        gemini({ key: 'k', baseUrl: `${baseUrl}/v1beta`, models: ['to-generate-content'] }),
      ],
      plugins: [
        borrowing(),
        continuation(),
        modelLimits({ models: { '*': { tokensPerMinute: 1_000_000_000_000 } } }),
        channelLimits({ channels: { chat: { tokensPerMinute: 1_000_000_000_000 } } }),
        usageLog({ capture: { limit: 65_536, redact: ['messages.*.content', '/\\d{16}/'] } }),
      ],
    });
    if (given === undefined) throw new Error('No plugin was set up.');
    return new MeasuredGateway(gateway, provider, given);
  }

  /** Sends one request and reads its reply to the end. Throws for what no caller would understand. */
  async sendCall(format: ChatFormat, model: string, stream: boolean, body: string): Promise<number> {
    const paths: Readonly<Record<ChatFormat, string>> = {
      'chat-completions': '/v1/chat/completions',
      messages: '/v1/messages',
      responses: '/v1/responses',
      'generate-content': `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    };
    const answer = await fetch(this.#gateway.url + paths[format], {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#gateway.key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body,
    });
    const text = await answer.text();
    if (answer.status === 500)
      throw new Error(`${format} to ${model}: ${answer.status} ${text.slice(0, 300)}`);
    return answer.status;
  }

  /** Drops the log's lines and the records of all calls. */
  async forget(): Promise<void> {
    await this.#gateway.forgetLines();
    await this.#tools.usageLog.prune({ days: 1, records: 0, sumDays: 1 });
  }

  async close(): Promise<void> {
    await this.#gateway.close();
    await this.#provider.terminate();
  }
}

/** Size from which the fixed cost of a call does not dominate. */
const least = 2048;

/** Replies of which some formats have only one. */
const ofOneChoice = replyShapes.filter(({ name }) => !name.includes('choices'));

/**
 * Whole calls with all plugins on: every request and every reply from each format and to each, and where `all` is true for each pair of
 * them.
 */
export function gatewayWork(gateway: MeasuredGateway, all: boolean): Work[] {
  const close = (): Promise<void> => gateway.forget();
  return chatFormats.flatMap((from, row) =>
    chatFormats.flatMap((to, column) => {
      const isTaken = (_shape: unknown, index: number): boolean =>
        all || index % chatFormats.length === (row + column) % chatFormats.length;
      const model = `to-${to}`;
      const named = (body: JsonObject, stream: boolean): string =>
        JSON.stringify(from === 'generate-content' ? body : { ...body, model, stream });
      const requests = requestShapes.filter(isTaken).map((shape): Work => ({
        part: `whole call: ${from} to ${to}`,
        shape: shape.name,
        oneStep: false,
        least,
        close,
        ...(shape.most === undefined ? {} : { most: shape.most / 8 }),
        make: (size) => {
          const body = named(shape.make(from, size), false);
          return { bytes: body.length, run: () => gateway.sendCall(from, model, false, body) };
        },
      }));
      const replies = ofOneChoice.filter(isTaken).flatMap((shape) =>
        [true, false].map((stream): Work => ({
          part: `whole call: ${from} to ${to}`,
          shape: `${shape.name}, ${stream ? 'streamed' : 'whole'}`,
          oneStep: false,
          least: Math.min(8192, (shape.most ?? 4000) / 4),
          most: shape.most ?? 4000,
          close,
          make: (size) => {
            const words = `<<reply: ${shape.name}: ${size}>>`;
            const text = requestShapes[0]?.make(from, 1) ?? {};
            const body = named(
              JSON.parse(JSON.stringify(text).replace('hello', words)) as JsonObject,
              stream,
            );
            return { bytes: 64 * size, run: () => gateway.sendCall(from, model, stream, body) };
          },
        })),
      );
      return [...requests, ...replies];
    }),
  );
}
