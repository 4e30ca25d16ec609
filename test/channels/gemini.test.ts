import { describe, expect, it } from 'vitest';
import gemini from '../../channels/gemini.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { startGateway } from '../support/gateway.ts';
import { streamOf } from '../support/provider-replies.ts';
import { startUpstream } from '../support/upstream.ts';

it('counts tokens as well', () => {
  expect(gemini.spec.setup({}, { keys: [] } as never).speaks['count-tokens']).toEqual(['generate-content']);
});

describe('a model that is known to stream the arguments of calls', () => {
  const args = { path: 'a.txt', edits: [{ text: 'It was a dark', all: true }] };
  const tool = { name: 'write', schema: { type: 'object', properties: { path: { type: 'string' } } } };
  const clients = {
    '/v1/chat/completions': {
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: tool.name, parameters: tool.schema } }],
    },
    '/v1/messages': {
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ name: tool.name, input_schema: tool.schema }],
    },
    '/v1/responses': {
      input: 'Hi',
      store: false,
      tools: [{ type: 'function', name: tool.name, parameters: tool.schema }],
    },
  } as const;

  /** Returns the arguments that a frame adds. */
  function pieceIn(frame: JsonObject): string {
    const text = JSON.stringify(frame);
    const [, piece] =
      /"partial_json":("(?:[^"\\]|\\.)*")/.exec(text) ??
      /"arguments":("(?:[^"\\]|\\.)*")\}\}\]/.exec(text) ??
      /"type":"response.function_call_arguments.delta".*"delta":("(?:[^"\\]|\\.)*")/.exec(text) ??
      [];
    return piece === undefined ? '' : String(JSON.parse(piece));
  }

  it.each(Object.keys(clients) as (keyof typeof clients)[])(
    'is asked to by a streaming client of %s, which gets them in pieces',
    async (path) => {
      const frames = streamOf('generate-content', {
        parts: [{ kind: 'call', name: 'write', input: JSON.stringify(args) }],
        end: 'stop',
        usageReport: 'all',
        pieces: 4,
        streamsArguments: true,
      });
      const upstream = await startUpstream(async (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const frame of frames) {
          response.write(`${frame}\r\n\r\n`);
          await new Promise((resolve) => setImmediate(resolve));
        }
        response.end();
      });
      const gateway = await startGateway({
        channels: [
          gemini({
            key: 'k',
            baseUrl: upstream.url,
            models: ['gemini-3-pro'],
            traits: { 'gemini-3*': { streamsArguments: true } },
          }),
        ],
      });
      try {
        const answer = await fetch(`${gateway.url}${path}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            'anthropic-version': '2023-06-01',
          },
          body: JSON.stringify({ model: 'gemini-3-pro', stream: true, ...clients[path] }),
        });
        const pieces = (await answer.text())
          .split('\n')
          .filter((line) => line.startsWith('data: {'))
          .map((line) => pieceIn(parseObject(line.slice(6)) ?? {}))
          .filter((piece) => piece !== '');
        expect(JSON.parse(pieces.join(''))).toEqual(args);
        expect(pieces.length).toBeGreaterThan(4);
        expect(parseObject(upstream.requests[0]?.body.toString() ?? '')?.toolConfig).toEqual({
          functionCallingConfig: { streamFunctionCallArguments: true },
        });
      } finally {
        await gateway.close();
        await upstream.close();
      }
    },
  );
});
