import type { ServerResponse } from 'node:http';
import { expect, onTestFinished } from 'vitest';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import type { ChannelOptions } from '../../core/sdk/define.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, read, voices, type Answer, type FormatName } from './_wire.ts';

/** A JSON object, as a test writes it. */
export type Json = Record<string, unknown>;

const json = { 'content-type': 'application/json' };
/** The format of most of these providers. */
export const openAi: FormatName = 'chat-completions';

/** A refusal of OpenAI, with the member in `param`. */
export function unsupported(
  param: string,
  message = `Unsupported parameter: '${param}' is not supported with this model.`,
): Json {
  return { error: { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' } };
}

/** Returns a provider's response to a body: an error of 400, another status with a body, or undefined for a reply. */
export type Judge = (body: Json, count: number) => Json | readonly [status: number, body: Json] | undefined;

/** Returns a judge that refuses requests with one of these members, with the provider's error text. */
export function refusing(members: Readonly<Record<string, Json>>): Judge {
  return (body) => Object.entries(members).find(([name]) => valueAt(body, name) !== undefined)?.[1];
}

function valueAt(body: Json, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => (inner as Json | undefined)?.[name], body);
}

/** Starts a provider that responds as the judge decides. Closes it after the test. */
export async function provider(format: FormatName, judge: Judge): Promise<ScriptedUpstream> {
  const started = await startUpstream(({ url, body }, response, count) => {
    const fields = JSON.parse(body.toString()) as Json;
    const verdict = judge(fields, count);
    if (verdict !== undefined) {
      const [status, error] = Array.isArray(verdict) ? (verdict as readonly [number, Json]) : [400, verdict];
      response.writeHead(status, json).end(JSON.stringify(error));
    } else reply(format, fields.stream === true || url.includes('streamGenerateContent'), response);
  });
  onTestFinished(() => started.close());
  return started;
}

function reply(format: FormatName, stream: boolean, response: ServerResponse): void {
  if (stream)
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(voices[format].frames(['fi', 'ne']).join(''));
  else response.writeHead(200, json).end(JSON.stringify(voices[format].whole('fine')));
}

/** A gateway that is closed after the test. */
export async function gatewayOf(config: GatewayConfig): Promise<TestGateway> {
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Starts a gateway with one channel of the format, and a provider that refuses what the judge refuses. */
export async function stage(
  format: FormatName,
  judge: Judge,
  options: ChannelOptions = {},
  config: Partial<GatewayConfig> = {},
) {
  const upstream = await provider(format, judge);
  const gateway = await gatewayOf({
    channels: [voices[format].channel(upstream.url, { ...options })],
    ...config,
  });
  const callModel = (
    more: Json,
    client: FormatName = format,
    stream = false,
    headers = {},
  ): Promise<Answer> => {
    const { model } = voices[format];
    return call(gateway, client, model, stream, {
      body: { ...voices[client].body(model, stream), ...more },
      headers,
    });
  };
  return { gateway, upstream, callModel, sent: () => bodiesOf(upstream) };
}

/** Returns the bodies that a provider received. */
export function bodiesOf({ requests }: ScriptedUpstream): readonly Json[] {
  return requests.map(({ body }) => JSON.parse(body.toString()) as Json);
}

/** Returns the text of a successful reply. */
export const text = (format: FormatName, answer: Answer, stream = false): string => {
  expect(answer.status).toBe(200);
  return read(format, stream, answer).text;
};
