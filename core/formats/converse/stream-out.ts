/** Writes a Converse stream. */
import { randomUUID } from 'node:crypto';
import type { GatewayError } from '../../sdk/errors.ts';
import type { HeadEvent } from '../../model/event.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { BlockEncoder } from '../_shared/block-encoder.ts';
import type { BlockWords, OpenBlock } from '../_shared/block-words.ts';
import type { EventOf } from '../_shared/floor.ts';
import { citationForClient } from './citations.ts';
import { streamError } from '../_shared/exceptions.ts';
import { formatOf, mediaKinds } from './parts.ts';
import { encodeUsage } from './usage.ts';
import { stopOfReason } from './finish.ts';
import { formatName, own } from './wire.ts';

const blockWords: BlockWords = {
  format: formatName,
  text: (text) => ({ text }),
  thinking: (text) => ({ reasoningContent: { text } }),
  input: (input) => ({ toolUse: { input } }),
  citation: (citation) => ({ citation }),
  citationOf: citationForClient,
  freshCallId: () => `tooluse_${randomUUID().replaceAll('-', '')}`,
  stops: stopOfReason,
};

/** Encodes events to the client's frames. The format has no keep-alive frame, so an empty delta of an open block is sent instead. */
export class ConverseStreamEncoder extends BlockEncoder {
  constructor(context: ReplyContext) {
    super(blockWords, context);
  }

  protected override emitHead(head: HeadEvent | undefined): void {
    super.emitHead(head);
    this.emit('messageStart', { role: 'assistant' });
  }

  protected emitStart(contentBlockIndex: number, _current: OpenBlock, start: JsonObject | undefined): void {
    if (start !== undefined) this.emit('contentBlockStart', { contentBlockIndex, start });
  }

  protected emitDelta(contentBlockIndex: number, delta: JsonObject): void {
    this.emit('contentBlockDelta', { contentBlockIndex, delta });
  }

  protected emitStop(contentBlockIndex: number): void {
    this.emit('contentBlockStop', { contentBlockIndex });
  }

  /** Emits `messageStop`, and `metadata` with the usage and the duration. */
  protected emitEnd(): void {
    const { finish, usage } = this;
    const { body, inputEstimate } = this.context;
    const stopReason = this.stopReason();
    this.emit('messageStop', {
      stopReason,
      ...sequenceField(finish?.stopSequence, body),
      ...own(finish?.extra),
    });
    const estimate = { usage: { inputTokens: inputEstimate, outputTokens: 0, totalTokens: inputEstimate } };
    this.emit('metadata', {
      ...timeTaken(this.context),
      ...(usage === undefined ? estimate : encodeUsage(usage)),
    });
  }

  protected call(toolUseId: string, event: EventOf<'tool-start'>): JsonObject {
    return { toolUse: { toolUseId, name: event.name, ...own(event.extra) } };
  }

  protected hide(current: OpenBlock, redactedContent: string): void {
    this.emitDelta(this.open(current), { reasoningContent: { redactedContent } });
  }

  /** Writes a signature, which belongs to a text, even an empty one. */
  protected sign(current: OpenBlock, signature: string): void {
    if (current.index === undefined) this.emitDelta(this.open(current), { reasoningContent: { text: '' } });
    this.emitDelta(this.open(current), { reasoningContent: { signature } });
  }

  /** Writes images. The format has no other media in an answer. */
  protected override media(event: EventOf<'media-start' | 'media-delta' | 'media-end'>): void {
    const { current } = this;
    if (event.type === 'media-end') return this.close();
    if (event.type === 'media-start') {
      if (current !== undefined) return;
      const format = formatOf(mediaKinds.image, event.mimeType ?? 'image/png');
      if (event.media !== 'image' || format === undefined) return this.losses.drop('media');
      this.open(this.take(event.block, 'media'), { image: { format } });
      return;
    }
    if (event.transcript !== undefined) this.losses.drop('media.transcript');
    if (event.data !== undefined && current?.index !== undefined && current.kind === 'media')
      this.emitDelta(current.index, { image: { source: { bytes: event.data } } });
  }

  protected emitError(error: GatewayError): void {
    this.emit('error', streamError(error));
  }

  protected locate({ event, body }: JsonObject): ReturnType<BlockEncoder['locate']> {
    const part = isObject(body) ? parts.get(event) : undefined;
    return { part: part ?? 'none', index: isObject(body) ? body.contentBlockIndex : undefined };
  }

  protected emitApart({ event, body }: JsonObject): void {
    if (typeof event === 'string' && isObject(body)) this.emit(event, body);
  }

  protected emitOpaque(block: number, { event, body }: JsonObject): void {
    if (typeof event !== 'string' || !isObject(body)) return;
    const current = event === 'contentBlockStart' ? this.take(block, 'opaque') : this.current;
    if (current === undefined) return;
    // Text and reasoning begin with their first piece, which this may be.
    const contentBlockIndex = this.assignIndex(current);
    if (event === 'contentBlockStop') this.current = undefined;
    this.emit(event, { ...body, contentBlockIndex });
  }
}

const parts = new Map<unknown, 'start' | 'delta' | 'stop'>([
  ['contentBlockStart', 'start'],
  ['contentBlockDelta', 'delta'],
  ['contentBlockStop', 'stop'],
]);

/** Returns the matched stop sequence for clients that request it. */
function sequenceField(
  sequence: string | undefined,
  { additionalModelResponseFieldPaths: paths }: JsonObject,
): JsonObject {
  const includesStopSequence =
    Array.isArray(paths) && (paths as readonly JsonValue[]).includes('/stop_sequence');
  if (sequence === undefined || !includesStopSequence) return {};
  return { additionalModelResponseFields: { stop_sequence: sequence } };
}

/** Returns the duration of the call, in whole seconds, if the provider sends none. */
function timeTaken({ created, completed }: ReplyContext): JsonObject {
  const end = completed ?? Math.floor(Date.now() / 1000);
  return { metrics: { latencyMs: Math.max(0, end - created) * 1000 } };
}
