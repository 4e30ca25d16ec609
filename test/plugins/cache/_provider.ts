import type { ServerResponse } from 'node:http';
import {
  formatVoice,
  ended,
  startUpstream,
  text,
  type Script,
  type ScriptedUpstream,
  type SeenRequest,
  type Voice,
} from 'sluice/testing';
import type { ChannelEntry, GatewayEvent } from 'sluice';
import anthropic from '../../../channels/anthropic.ts';
import gemini from '../../../channels/gemini.ts';
import openai from '../../../channels/openai.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';

/** Formats in which clients ask and channels are asked. */
export const formats = ['chat-completions', 'responses', 'messages', 'generate-content'] as const;
export type FormatName = (typeof formats)[number];

/** Handler of a provider's requests: returns a script to reply with, or responds itself. */
export type Does = (
  request: SeenRequest,
  count: number,
) => Script | 'by itself' | Promise<Script | 'by itself'>;

/** A provider that speaks one format, and the channel that leads there. */
export interface Provider extends ScriptedUpstream {
  readonly channel: ChannelEntry;
}

const usage = { input: 12, output: 7 };

/** The usual answer: a text in two pieces. */
export const usual = (words = 'Hello there.'): Script =>
  ended({ usage }, text(words.slice(0, 5), words.slice(5)));

/** Starts a provider of a format for the model `m`. `by` may answer the response itself where `does` says so. */
export async function startProvider(
  format: FormatName,
  does: Does = () => usual(),
  by: (response: ServerResponse, request: SeenRequest) => void = () => {},
): Promise<Provider> {
  const voice = await formatVoice(format);
  const upstream = await startUpstream(async (request, response, count) => {
    const script = await does(request, count);
    if (script === 'by itself') by(response, request);
    else write(voice, request, response, script);
  });
  return { ...upstream, channel: channelTo(format, upstream.url) };
}

function write(voice: Voice, request: SeenRequest, response: ServerResponse, script: Script): void {
  const events = script.filter((step): step is GatewayEvent => 'type' in step);
  if (!voice.hear(request).stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(voice.whole(events, request));
    return;
  }
  const { pieces, end } = voice.stream(events, request);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const piece of pieces) response.write(piece);
  response.end(end);
}

function channelTo(format: FormatName, url: string): ChannelEntry {
  const models = ['m'];
  switch (format) {
    case 'chat-completions':
      return openaiCompatible({ name: 'up', id: 'up', key: 'k', baseUrl: `${url}/v1`, models });
    case 'responses':
      return openai({
        id: 'up',
        key: 'k',
        baseUrl: `${url}/v1`,
        models,
        traits: { '*': { formats: ['responses'] } },
      });
    case 'messages':
      return anthropic({ id: 'up', key: 'k', baseUrl: url, models });
    case 'generate-content':
      return gemini({ id: 'up', key: 'k', baseUrl: url, models });
  }
}
