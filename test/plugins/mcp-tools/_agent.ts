import { McpServer } from '@modelcontextprotocol/server';
import { formatVoice, startUpstream, type ScriptedUpstream, type Script, type Step } from 'sluice/testing';
import type { ChatRequest, GatewayEvent } from 'sluice';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import anthropicCompatible from '../../../channels/anthropic-compatible.ts';
import geminiCompatible from '../../../channels/gemini-compatible.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import type { GatewayConfig } from '../../../core/sdk/config.ts';
import mcpTools from '../../../plugins/mcp-tools/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startMcpServer, type HttpMcpServer } from '../../support/mcp/http-server.ts';

export const formats = ['chat-completions', 'responses', 'messages', 'generate-content'] as const;
export type FormatName = (typeof formats)[number];

/** A model: what it says to a request, by the number of requests that it has had. */
export type Model = (request: ChatRequest, round: number) => Script | Promise<Script>;

/** A provider whose model is scripted, in each of the formats: the model `of-FORMAT` is asked in that one. */
export interface Agent {
  readonly gateway: TestGateway;
  /** Requests to the model, oldest first. */
  readonly requests: ChatRequest[];
  /** Bodies of these requests. */
  readonly bodies: string[];
}

type Plugins = NonNullable<GatewayConfig['plugins']>;

/** Starts a gateway with a scripted model behind channels of each format. */
export async function startAgent(
  model: Model,
  options: Parameters<typeof mcpTools>[0],
  more: Omit<GatewayConfig, 'plugins' | 'channels'> & {
    readonly plugins?: Plugins;
    readonly channels?: (url: string) => NonNullable<GatewayConfig['channels']>;
  } = {},
): Promise<Agent> {
  const requests: ChatRequest[] = [];
  const bodies: string[] = [];
  const voices = new Map(
    await Promise.all(formats.map(async (name) => [name, await formatVoice(name)] as const)),
  );
  const provider: ScriptedUpstream = await startUpstream(async (request, response) => {
    const voice = voices.get(formatOf(request.url));
    if (voice === undefined) return void response.writeHead(404).end();
    const received = voice.hear(request);
    requests.push(received.request);
    bodies.push(request.body.toString());
    const script = await model(received.request, requests.length);
    const failed = script.find((step) => 'fail' in step);
    if (failed !== undefined) {
      response.writeHead(503, { 'content-type': 'application/json' }).end(voice.error(503, 'busy'));
      return;
    }
    const events = script.filter((step: Step): step is GatewayEvent => 'type' in step);
    if (!received.stream) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(voice.whole(events, request));
      return;
    }
    const { pieces, end } = voice.stream(events, request);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) response.write(piece);
    response.end(end);
  });
  const { plugins = [], channels = () => [], ...settings } = more;
  const base = { key: 'k', models: undefined };
  const gateway = await startGateway({
    ...settings,
    plugins: [mcpTools(options), ...plugins],
    channels: [
      openaiCompatible({
        ...base,
        name: 'chat',
        baseUrl: `${provider.url}/v1`,
        models: ['of-chat-completions'],
      }),
      openaiCompatible({
        ...base,
        name: 'responses',
        baseUrl: `${provider.url}/v1`,
        models: ['of-responses'],
        speaks: { chat: ['responses'] },
      }),
      anthropicCompatible({
        ...base,
        name: 'messages',
        baseUrl: `${provider.url}/v1`,
        models: ['of-messages'],
      }),
      geminiCompatible({
        ...base,
        name: 'google',
        baseUrl: `${provider.url}/v1beta`,
        models: ['of-generate-content'],
      }),
      ...channels(provider.url),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
  });
  return { gateway, requests, bodies };
}

function formatOf(url: string): FormatName {
  if (url.includes('/messages')) return 'messages';
  if (url.includes('/responses')) return 'responses';
  return url.includes(':') ? 'generate-content' : 'chat-completions';
}

/** Calls that a test server received. */
export interface Tools {
  readonly server: HttpMcpServer;
  readonly calls: { readonly name: string; readonly args: unknown }[];
  /** Highest number of calls that ran at the same time. */
  most(): number;
}

/** Starts an MCP server of the official SDK that tells the weather. */
export async function startWeather(name = 'weather'): Promise<Tools> {
  const calls: { name: string; args: unknown }[] = [];
  let running = 0;
  let most = 0;
  const build = (): McpServer => {
    const server = new McpServer({ name, version: '1.0.0' });
    server.registerTool(
      'forecast',
      {
        description: 'Tells the weather.',
        inputSchema: z.object({ city: z.string() }),
        annotations: { readOnlyHint: true },
      },
      async ({ city }) => {
        calls.push({ name: 'forecast', args: { city } });
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 10));
        running -= 1;
        return { content: [{ type: 'text', text: `Sunny in ${city}` }] };
      },
    );
    server.registerTool('warn', { description: 'Sends a warning.', inputSchema: z.object({}) }, async () => {
      calls.push({ name: 'warn', args: {} });
      return { content: [{ type: 'text', text: 'sent' }] };
    });
    return server;
  };
  const server = await startMcpServer(build);
  onTestFinished(() => server.close());
  return { server, calls, most: () => most };
}

/** Text of the last result that a request brings. */
export function lastResult(request: ChatRequest): string {
  const results = request.messages.flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool-result' ? [block] : [])),
  );
  const [first] = results.at(-1)?.content ?? [];
  return first?.type === 'text' ? first.text : '';
}
