/** Answers of the demo besides chat: embeddings, images, speech, transcripts and the rest. */
import {
  parseObject,
  toGatewayError,
  type GatewayEvent,
  type GatewayRequest,
  type JsonObject,
  type Operation,
  type Upstream,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import type { Codec, Form, ReplyContext } from 'sluice/channel-kit';
import { plainName, type Format } from 'sluice/internal';
import type { DemoOperation } from './demo-operation.ts';
import { failure, page, pause, refusal, requestId } from './answers.ts';
import { embed } from './embed.ts';
import { images } from './images.ts';
import { moderate } from './moderate.ts';
import { ocr } from './ocr.ts';
import { rerank } from './rerank.ts';
import { body, overloaded, reply, streamSteps, wholeSteps } from './reply.ts';
import { speak } from './speak.ts';
import { readSwitches, type Switches } from './switches.ts';
import { transcribe } from './transcribe.ts';

const operations: { readonly [O in Operation]?: DemoOperation } = {
  embed,
  rerank,
  moderate,
  ocr,
  transcribe,
  'translate-audio': transcribe,
  speak,
  'generate-image': images,
  'edit-image': images,
  'vary-image': images,
};

/** Formats of the demo's operations besides chat. */
export const otherOperations: ChannelParts['speaks'] = Object.fromEntries(
  Object.entries(operations).map(([operation, { speaks }]) => [operation, speaks]),
);

/** Options of the demo that concern these operations. */
interface Pace {
  readonly delay: number;
  readonly pace: number;
}

/** Answers a request for one of these operations, with the faults that its commands request. */
export async function answerOther(
  call: Call,
  format: Format,
  wire: UpstreamRequest,
  { delay, pace }: Pace,
): Promise<Upstream> {
  const operation = operations[wire.operation];
  const codec: Codec | undefined = format.codecs[wire.operation];
  if (operation === undefined || codec === undefined)
    throw new Error(`The demo does not do ${wire.operation} in the format "${format.name}".`);
  let request: GatewayRequest;
  let document: JsonObject;
  let switches: Switches;
  let events: readonly GatewayEvent[];
  try {
    const form = formOf(wire);
    document = form === undefined ? (parseObject(wire.body.toString()) ?? {}) : fieldsOf(form);
    const params = { model: wire.model, ...(form === undefined ? {} : { form }) };
    request = codec.decodeRequest(document, params);
    switches = readSwitches(wire.model, operation.text(request));
    events = operation.answer(request, switches);
  } catch (error) {
    return refusal(call, format, toGatewayError(error));
  }
  await pause(call, delay + (switches['slow-headers'] ?? 0));
  if (switches.html) return page(call, switches.status ?? 200);
  if (switches.status !== undefined)
    return refusal(call, format, failure(switches.status, switches['retry-after']));
  if (switches['200-error']) return { ...refusal(call, format, overloaded()), status: 200 };
  const context = contextOf(call, wire, document);
  const headers = format.replyHeaders(requestId(call));
  const encoder = wire.stream ? codec.encodeStream?.(context) : undefined;
  if (encoder !== undefined) {
    const steps = streamSteps(events, encoder, switches, wire.format);
    return reply(call, 200, { ...headers, 'content-type': 'text/event-stream' }, steps, pace);
  }
  const whole = codec.encodeWhole(context);
  for (const event of events) whole.event(event);
  const plain = whole.plain?.();
  if (plain !== undefined)
    return reply(call, 200, { ...headers, 'content-type': plain.contentType }, pieces(plain.bytes), pace);
  const steps = switches.garbage ? body('{"this is": not JSON') : wholeSteps(whole.end(), switches);
  return reply(call, 200, { ...headers, 'content-type': 'application/json' }, steps);
}

/** Returns bytes in chunks, as a provider does that generates them while sending. */
function* pieces(bytes: Buffer): Generator<{ readonly bytes: Buffer }> {
  const size = Math.max(1024, Math.ceil(bytes.length / 16));
  for (let at = 0; at < bytes.length; at += size) yield { bytes: bytes.subarray(at, at + size) };
}

function formOf({ body: sent }: UpstreamRequest): Form | undefined {
  return typeof sent === 'string' || Buffer.isBuffer(sent) ? undefined : sent;
}

/** Returns the text fields of a form as the gateway would read them. */
function fieldsOf(form: Form): JsonObject {
  const fields = new Map<string, string | string[]>();
  for (const part of form) {
    if (!('value' in part)) continue;
    const name = plainName(part.name);
    const before = fields.get(name);
    if (before !== undefined) fields.set(name, [before, part.value].flat());
    else fields.set(name, name === part.name ? part.value : [part.value]);
  }
  return Object.fromEntries(fields);
}

function contextOf(call: Call, wire: UpstreamRequest, document: JsonObject): ReplyContext {
  return {
    model: wire.model,
    body: document,
    requestId: requestId(call),
    created: Math.floor(Date.now() / 1000),
    inputEstimate: 0,
    drop: () => {},
  };
}
