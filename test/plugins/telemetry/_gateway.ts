import { onTestFinished } from 'vitest';
import anthropicChannel from '../../../channels/anthropic.ts';
import geminiChannel from '../../../channels/gemini.ts';
import openaiChannel from '../../../channels/openai.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
import { anthropic, genai, openai, type FormatName } from '../../clients/sdks.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { streamOf, reportedUsage, wholeOf, type Answer } from '../../support/provider-replies.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../../support/upstream.ts';

/** Replies of the fake providers. */
export const answer: Answer = {
  parts: [{ kind: 'text', text: 'The weather in Paris is fine today.' }],
  end: 'stop',
  usageReport: 'all',
  pieces: 4,
};

/** The model behind each channel, by the format in which that is spoken to. Each has the same price. */
export const models = {
  'chat-completions': 'gpt-4.1',
  responses: 'gpt-4.1-mini',
  messages: 'claude-sonnet-4-5',
  'generate-content': 'gemini-2.5-flash',
} as const;

/** Dollars for a million tokens. */
export const price = { input: 2, output: 8 };

/** Cost of a call with the usage of the fake providers. */
export const dollars = (reportedUsage.input * price.input + reportedUsage.output * price.output) / 1e6;

const format = ({ url }: SeenRequest): FormatName => {
  if (url.includes('/chat/completions')) return 'chat-completions';
  if (url.includes('/responses')) return 'responses';
  return url.includes('/messages') ? 'messages' : 'generate-content';
};

/** Answers a request in the format in which it came, whole or streamed. */
export function respond(
  request: SeenRequest,
  response: Parameters<Parameters<typeof startUpstream>[0]>[1],
): void {
  const name = format(request);
  const body = JSON.parse(request.body.toString()) as { stream?: boolean };
  if (body.stream !== true && !request.url.includes('stream')) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(wholeOf(name, answer)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of streamOf(name, answer)) response.write(`${event}\n\n`);
  response.end();
}

/** A gateway that sends its telemetry to a collector, with a fake provider behind it. */
export interface Observed {
  readonly gateway: TestGateway;
  readonly provider: ScriptedUpstream;
}

/** Starts a gateway with the plugin and three channels. It ends with the test, or when `ends` says. */
export async function startObserved(
  options: Parameters<typeof telemetry>[0],
  script: Parameters<typeof startUpstream>[0] = respond,
  ends: (job: () => Promise<void>) => void = onTestFinished,
): Promise<Observed> {
  const provider = await startUpstream(script);
  const gateway = await startGateway({
    plugins: [telemetry(options)],
    prices: Object.fromEntries(Object.values(models).map((model) => [model, price])),
    channels: [
      openaiChannel({
        id: 'openai-eu',
        key: 'k',
        baseUrl: `${provider.url}/v1`,
        models: [models['chat-completions'], models.responses],
      }),
      anthropicChannel({ key: 'k', baseUrl: provider.url, models: [models.messages] }),
      geminiChannel({ key: 'k', baseUrl: provider.url, models: [models['generate-content']] }),
    ],
  });
  ends(async () => {
    await gateway.close();
    await provider.close();
  });
  return { gateway, provider };
}

/** Calls the gateway with the official client of a format, streamed or not, and reads the response to its end. */
export async function callWithClient(
  gateway: TestGateway,
  client: FormatName,
  model: string,
  stream: boolean,
  headers: Record<string, string> = {},
): Promise<void> {
  const content = 'What is the weather in Paris?';
  const drain = async (events: AsyncIterable<unknown>): Promise<void> => {
    for await (const event of events) void event;
  };
  switch (client) {
    case 'chat-completions': {
      const body = {
        model,
        temperature: 0.5,
        max_tokens: 100,
        messages: [{ role: 'user' as const, content }],
      };
      const { chat } = openai(gateway, { headers });
      if (stream) await drain(await chat.completions.create({ ...body, stream }));
      else await chat.completions.create(body);
      break;
    }
    case 'responses': {
      const body = { model, temperature: 0.5, max_output_tokens: 100, input: content };
      const { responses } = openai(gateway, { headers });
      if (stream) await drain(await responses.create({ ...body, stream }));
      else await responses.create(body);
      break;
    }
    case 'messages': {
      const body = {
        model,
        temperature: 0.5,
        max_tokens: 100,
        messages: [{ role: 'user' as const, content }],
      };
      const { messages } = anthropic(gateway, { headers });
      if (stream) await drain(await messages.create({ ...body, stream }));
      else await messages.create(body);
      break;
    }
    case 'generate-content': {
      const body = { model, contents: content, config: { temperature: 0.5, maxOutputTokens: 100 } };
      const { models: own } = genai(gateway, { headers });
      if (stream) await drain(await own.generateContentStream(body));
      else await own.generateContent(body);
      break;
    }
  }
}
