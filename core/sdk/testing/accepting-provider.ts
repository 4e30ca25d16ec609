/** Fake provider that supports everything a channel is tested for: its responses, and a request handler that sends them. */
import type { ServerResponse } from 'node:http';
import type { ChatRequest, Message } from '../../model/chat.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { SeenRequest } from './provider.ts';
import { ended, reply, text, thought, toolCall, type Script } from './script.ts';
import { streamHeaders, type ReceivedRequest, type Voice } from './voice.ts';

/**
 * Returns the response of a provider that supports all features that channels are tested for: tools, images, documents, structured output,
 * reasoning and prompt caches. Answers any other request with "Apple."
 *
 * @example
 * await startUpstream((request, response) => respondWith(voice, request, response, scriptFor));
 */
export function scriptFor({ request }: ReceivedRequest): Script {
  const { settings, messages, tools, toolChoice } = request;
  const blocks = messages.flatMap(({ content }) => content);
  const prompt = wordsOf(messages.slice(-1));
  const instructions = wordsOf([...request.system, ...messages.filter(({ role }) => role === 'system')]);
  if (settings.maxOutput === 16) return ended({ finish: 'length', usage: { output: 16 } }, 'One two three');
  if (blocks.some(({ type }) => type === 'tool-result')) return reply('There is hail in Oslo.');
  const answer = { city: 'Oslo', people: 700_000 };
  if (settings.responseFormat?.type === 'json-schema') return reply(JSON.stringify(answer));
  const cities = ['Oslo', 'Rome'].filter((city) => prompt.includes(city));
  const forced = toolChoice?.type === 'tool' ? toolChoice.name : undefined;
  // A forced tool replaces structured output in formats that have none.
  if (forced !== undefined && forced !== 'weather') return reply(toolCall(forced, answer));
  if (tools.length > 0 && cities.length > 0)
    return reply(...cities.map((city, index) => toolCall('weather', { city }, `call_${index}`)));
  if (blocks.some(({ type }) => type === 'image')) return reply('Red.');
  if (blocks.some(({ type }) => type === 'file')) return reply('Marmalade.');
  if (settings.stop !== undefined && settings.stop.length > 0) return reply('A B C ');
  if (instructions.includes('pear')) return reply('Pear.');
  if (instructions.includes('Rule 0:')) return ended({ usage: { cacheRead: 5 } }, '0');
  if (prompt.includes('my cat')) return reply('Minka.');
  if (prompt.includes('Count'))
    return reply(text('one two three ', 'four five six ', 'seven eight nine ten'));
  if (prompt.includes('391'))
    return ended({ usage: { output: 20, reasoning: 12 } }, thought('17 times 23 is 391.'), 'No.');
  return reply('Apple.');
}

function wordsOf(messages: readonly Message[]): string {
  return messages
    .flatMap(({ content }) => content.map((block) => (block.type === 'text' ? block.text : '')))
    .join('\n');
}

/**
 * Handles one request as a provider that has every model except `sluice-no-such-model` and allows temperatures up to 2. A stream is sent with
 * one event per write.
 *
 * @example
 * const provider = await startUpstream((request, response) => respondWith(voice, request, response, scriptFor));
 */
export function respondWith(
  voice: Voice,
  request: SeenRequest,
  response: ServerResponse,
  says: (received: ReceivedRequest) => Script,
): void {
  const json = { 'content-type': 'application/json' };
  const refuse = (status: number, sentence: string): void =>
    void response
      .writeHead(status, { ...json, ...voice.errorHeaders?.(status) })
      .end(voice.error(status, sentence));
  if (request.method === 'GET') {
    response.writeHead(404, json).end('{}');
    return;
  }
  if (`${request.url} ${request.body.toString()}`.includes('sluice-no-such-model')) {
    refuse(404, 'There is no such model.');
    return;
  }
  let received: ReceivedRequest;
  try {
    received = voice.hear(request);
  } catch (error) {
    refuse(400, (error as Error).message);
    return;
  }
  if (isWrong(received.request)) {
    refuse(400, 'temperature: must be at most 2.');
    return;
  }
  const events = says(received).filter((step): step is GatewayEvent => 'type' in step);
  if (!received.stream) {
    response.writeHead(200, json).end(voice.whole(events, request));
    return;
  }
  const { pieces, end } = voice.stream(events, request);
  response.writeHead(200, streamHeaders(voice));
  const step = (index: number): void => {
    if (response.destroyed) return;
    const piece = pieces[index];
    if (piece === undefined) response.end(end);
    else response.write(piece, () => setImmediate(step, index + 1));
  };
  step(0);
}

function isWrong({ settings }: ChatRequest): boolean {
  return (settings.temperature ?? 0) > 2;
}
