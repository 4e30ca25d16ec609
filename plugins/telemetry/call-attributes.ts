/** Collects the values of an ended call, and makes the attributes of its span and log record from them. */
import type { Attributes } from '@opentelemetry/api';
import { caller, isChat, type Call, type CallOutcome, type ChatRequest } from 'sluice';
import type { Channels } from './channels.ts';
import { inputMessages, outputMessages, systemInstructions, toolDefinitions } from './messages.ts';
import { operationName } from './names.ts';
import type { TelemetryOptions } from './options.ts';
import type { Redactor } from './redact.ts';
import type { Facts } from './passed-facts.ts';
import type { ReplyFacts } from './reply-facts.ts';
import { outlineOf, present, referenceAttributes, settingsAttributes, word } from './settings.ts';

/** Ended call with the values that spans, metrics and log records share. */
export interface EndedCall {
  readonly call: Call;
  readonly outcome: CallOutcome;
  readonly facts: Facts;
  readonly reply: ReplyFacts | undefined;
  readonly outline: ChatRequest | undefined;
  /** `gen_ai.operation.name`. */
  readonly operation: string;
  /** `gen_ai.provider.name`; `sluice` for a call that reached no provider. */
  readonly provider: string;
  /** Returns `gen_ai.provider.name` of a channel that was tried. */
  readonly providerOf: (channel: string) => string;
  /** The channel that answered, or was tried last. */
  readonly channel: string | undefined;
  /** `error.type`; undefined for a call that went well. */
  readonly errorType: string | undefined;
  /** See {@link callAttributes}. Created on first use. */
  readonly attributes: () => Attributes;
}

/** Maximum number of characters of an error message, which may quote the request. */
export const maxMessage = 1_000;

/** Collects the values of a call that has ended. */
export function endedCall(
  call: Call,
  outcome: CallOutcome,
  reply: ReplyFacts | undefined,
  channels: Channels,
  content: TelemetryOptions['content'],
  redact: Redactor,
): EndedCall {
  const outline = outlineOf(call);
  const last = outcome.attempts.at(-1);
  let attributes: Attributes | undefined;
  const ended = {
    call,
    outcome,
    reply,
    outline,
    facts: reply?.facts(outline?.settings.choices ?? 1) ?? { finishReasons: [] },
    operation: operationName(call.operation, call.format.name),
    provider: last === undefined ? 'sluice' : channels.provider(last.channel, outcome.model),
    providerOf: (channel: string) => channels.provider(channel, outcome.model),
    channel: last?.channel,
    errorType: errorTypeOf(outcome),
  };
  return { ...ended, attributes: () => (attributes ??= callAttributes(ended, content, redact)) };
}

function errorTypeOf({ ended, error }: CallOutcome): string | undefined {
  if (ended === 'left') return 'client_closed_request';
  return ended === 'complete' ? undefined : (error?.code ?? '_OTHER');
}

/** Returns the attributes of a call that its span and its log record share. They must not be changed. */
export function callAttributes(
  ended: Omit<EndedCall, 'attributes'>,
  content: TelemetryOptions['content'],
  redact: Redactor,
): Attributes {
  const { call, outcome, facts, outline } = ended;
  const { wire } = call;
  const answered = outcome.attempts.findLast(({ failure }) => failure === undefined);
  const key = call.get(caller);
  const { host, port } = hostOf(wire.headers.host);
  const attributes = present({
    'gen_ai.operation.name': ended.operation,
    'gen_ai.provider.name': ended.provider,
    'gen_ai.request.model': call.askedModel === '' ? undefined : word(call.askedModel),
    'gen_ai.request.stream': call.stream ? true : undefined,
    'gen_ai.response.id': facts.id,
    'gen_ai.response.model': answered === undefined ? undefined : (facts.model ?? word(answered.model)),
    'gen_ai.response.finish_reasons': finishReasonsOf(ended),
    'error.type': ended.errorType,
    'http.request.method': wire.method,
    'http.response.status_code': outcome.status,
    'url.path': word(wire.path),
    'server.address': host,
    'server.port': port,
    'sluice.call.id': call.id,
    'sluice.format': call.format.name,
    'sluice.ended': outcome.ended,
    'sluice.channel': ended.channel,
    'sluice.model': outcome.model === call.askedModel ? undefined : word(outcome.model),
    'sluice.key.id': key?.id,
    'sluice.key.name': key === undefined ? undefined : word(key.name),
    'sluice.dropped': outcome.dropped.length === 0 ? undefined : outcome.dropped.map(word),
    'sluice.queued_ms': outcome.times.queuedMs,
  });
  Object.assign(attributes, usageAttributes(outcome), timeAttributes(ended));
  if (outline !== undefined) Object.assign(attributes, settingsAttributes(outline));
  if (content !== 'off') Object.assign(attributes, metadataAttributes(ended, redact));
  return attributes;
}

/** Returns the finish reasons. By the conventions, the choices of an incomplete response have the reason `error`. */
function finishReasonsOf({
  facts: { finishReasons },
  outcome,
  call,
}: Pick<EndedCall, 'facts' | 'outcome' | 'call'>): string[] | undefined {
  if (finishReasons.length > 0) return [...finishReasons];
  return call.operation === 'chat' && outcome.ended === 'interrupted' ? ['error'] : undefined;
}

function usageAttributes({ usage, cost }: CallOutcome): Attributes {
  if (usage === undefined) return {};
  const above = (count: number): number | undefined => (count > 0 ? count : undefined);
  return present({
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': above(usage.cacheRead),
    // Named so until version 1.41 of the conventions; backends know no other name yet.
    'gen_ai.usage.cache_creation.input_tokens': above(usage.cacheWrite),
    'gen_ai.usage.reasoning.output_tokens': above(usage.reasoning),
    'gen_ai.usage.cost': cost === undefined ? undefined : cost.microDollars / 1e6,
    'sluice.usage.estimated': usage.estimated,
  });
}

function timeAttributes({ call, outcome: { times } }: Pick<EndedCall, 'call' | 'outcome'>): Attributes {
  if (!call.stream || times.firstMs === undefined) return {};
  return {
    'gen_ai.response.time_to_first_chunk': times.firstMs / 1000,
    // From this one Langfuse takes the time to the first token.
    'langfuse.observation.completion_start_time': new Date(startOf(call) + times.firstMs).toISOString(),
  };
}

/** Milliseconds from the zero of `performance.now()` back to that of `Date.now()`. */
let offset = Number.NaN;

/** Returns the arrival of a call in milliseconds since 1970. Exact between the calls of one process, because the offset follows large steps alone. */
export function startOf({ startedAt }: Call): number {
  const current = Date.now() - performance.now();
  if (!(Math.abs(current - offset) <= 2)) offset = current;
  return offset + startedAt;
}

function metadataAttributes(
  { call, outline, outcome }: Pick<EndedCall, 'call' | 'outline' | 'outcome'>,
  redact: Redactor,
): Attributes {
  const { wire } = call;
  const agent = wire.headers['user-agent'];
  return present({
    'client.address': word(wire.ip),
    'user_agent.original': agent === undefined ? undefined : word(agent),
    'sluice.error.message': outcome.error && redact(outcome.error.message, maxMessage),
    'sluice.request.bytes': wire.bytes.length,
    'sluice.request.messages': outline?.messages.length,
    'sluice.request.tools': outline?.tools.length,
    ...(outline === undefined ? {} : referenceAttributes(call, outline)),
  });
}

/** Returns the texts of a chat, for its span alone. */
export function contentAttributes(
  { call, reply, facts }: EndedCall,
  { maxBytes }: Pick<TelemetryOptions, 'maxBytes'>,
  redact: Redactor,
): Attributes {
  const request = requestOf(call);
  const writing = { redact, maxBytes };
  const text = reply?.text;
  return present({
    'gen_ai.input.messages': request && written(() => inputMessages(request, writing)),
    'gen_ai.system_instructions': request && written(() => systemInstructions(request, writing)),
    'gen_ai.tool.definitions': request && written(() => toolDefinitions(request, writing)),
    'gen_ai.output.messages': text && written(() => outputMessages(text, facts.finishReasons, writing)),
  });
}

/** Runs `write`; undefined where arguments of a tool are nested too deeply to be written, so that the rest of the span is exported. */
function written(write: () => string | undefined): string | undefined {
  try {
    return write();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function requestOf(call: Call): ChatRequest | undefined {
  try {
    const { request } = call;
    return isChat(request) ? request : undefined;
  } catch {
    return undefined;
  }
}

function hostOf(header: string | undefined): { readonly host?: string; readonly port?: number } {
  const [, host, port] = /^(\[[\da-f:.]{2,45}\]|[\w.-]{1,253})(?::(\d{1,5}))?$/i.exec(header ?? '') ?? [];
  return { ...(host === undefined ? {} : { host }), ...(port === undefined ? {} : { port: Number(port) }) };
}
