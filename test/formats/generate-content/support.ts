import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { EncodeTarget, ReplyContext, RouteParams, WireFrame } from '../../../core/sdk/format.ts';
import generateContent from '../../../core/formats/generate-content/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';

export const fixtures = join(import.meta.dirname, '../../fixtures/generate-content');

export const chat = generateContent.codecs.chat!;
export const countTokens = generateContent.codecs['count-tokens']!;

/** The names of the fixtures of a kind, without their ending. */
export function names(kind: 'requests' | 'replies' | 'streams', ending: string): string[] {
  return readdirSync(join(fixtures, kind))
    .filter((file) => file.endsWith(ending) && !file.endsWith('.events.json'))
    .map((file) => file.slice(0, -ending.length));
}

export function readJson(kind: string, name: string): JsonObject {
  return JSON.parse(readFileSync(join(fixtures, kind, `${name}.json`), 'utf8')) as JsonObject;
}

export function readRequest(name: string): { params: RouteParams; body: JsonObject } {
  return readJson('requests', name) as unknown as { params: RouteParams; body: JsonObject };
}

export function readStream(name: string): string {
  return readFileSync(join(fixtures, 'streams', `${name}.sse`), 'utf8');
}

/** An encode target that notes what is lost. */
export function target(overrides: Partial<EncodeTarget> = {}): EncodeTarget & { losses: string[] } {
  const losses: string[] = [];
  return {
    model: 'm',
    stream: false,
    traits: {},
    headers: {},
    drop: (path) => losses.push(path),
    unsupported: 'refuse',
    ...overrides,
    losses,
  };
}

/** A reply context that notes what is lost. */
export function context(overrides: Partial<ReplyContext> = {}): ReplyContext & { losses: string[] } {
  const losses: string[] = [];
  return {
    model: 'gemini-x-1',
    body: {},
    requestId: 'req_1',
    created: 1_700_000_000,
    inputEstimate: 0,
    drop: (path) => losses.push(path),
    ...overrides,
    losses,
  };
}

/** The events of a provider's stream. */
export function decodeSse(text: string): GatewayEvent[] {
  const decoder = chat.decodeStream!({});
  const events = parseSse(text).flatMap((frame) => [...decoder.frame(frame)]);
  return [...events, ...decoder.end()];
}

/** The frames that a client gets for these events. */
export function encode(events: readonly GatewayEvent[], reply = context()): WireFrame[] {
  const encoder = chat.encodeStream!(reply);
  return [...events.flatMap((event) => [...encoder.event(event)]), ...encoder.end()];
}

export function encodeWhole(events: readonly GatewayEvent[], reply = context()): JsonObject {
  const encoder = chat.encodeWhole(reply);
  for (const event of events) encoder.event(event);
  return encoder.end();
}

/** The chunks of frames as plain JSON, as a client would parse them. */
export function chunks(frames: readonly WireFrame[]): JsonObject[] {
  return frames.map(
    (frame) => JSON.parse('json' in frame ? JSON.stringify(frame.json) : frame.text) as JsonObject,
  );
}

/** Returns the thrown error. */
export function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}
