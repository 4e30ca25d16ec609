import { of, type Observable } from 'rxjs';
import {
  chatOf,
  countTokens,
  GatewayError,
  startWithEvents,
  estimateInput,
  formatFor,
  chatFormats,
  targetIn,
  type GatewayEvent,
  type JsonObject,
  type AttemptEvent,
  type Loss,
  peekFirst,
  saysSomething,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import {
  definePlugin,
  codecFor,
  forgetMedia,
  requestLosses,
  sealMarks,
  describeLosses,
  type Call,
  type InternalTools,
  type Target,
} from 'sluice/internal';
import { passReply } from './pass-reply.ts';
import { passRequest } from './pass-request.ts';
import { decodeReply } from './decode-reply.ts';
import { writeRequest, writeUnread } from './encode-request.ts';
import { isOfImages, readImages, withBytes, withNamedUnits } from './images.ts';
import { inlineMedia, needsBytes } from './inline-media.ts';
import { inPieces } from './pieces.ts';
import { options, type TranslationOptions } from './options.ts';
import { withoutRefused } from './refused-members.ts';
import { refuseAboveLimit } from './output-limit.ts';
import { adapt } from './profile.ts';
import { passSocket } from './socket.ts';

/**
 * Translates between the client's format and the channel's. If the channel supports the client's format, the bytes pass through unchanged.
 * Otherwise the request is decoded and encoded, and `x-sluice-loss` lists dropped fields.
 */
export default definePlugin({
  name: 'translation',
  stage: 'translate',
  options,
  setup(chosen, tools: InternalTools) {
    return async function translation(call: Call, next) {
      const { target: chosenTarget } = call;
      if (chosenTarget === undefined)
        throw new Error('translation runs in the translate stage, where a channel is chosen.');
      if (call.operation === 'realtime') return passSocket(call, chosenTarget, next);
      const formats = formatsOf(chosenTarget, call);
      if (formats === undefined) return countHere(call, chosenTarget);
      const format = formatFor(call, chosenTarget, formats) ?? '';
      const target = targetIn(chosenTarget, format);
      call.codec.check?.(call.request, target.traits);
      refuseAboveLimit(call, target, chosen);
      if (target.traits.keepsResponses === false) refuseKept(call, call.bodyOutline);
      const same = format === call.codec.format;
      const passes =
        same &&
        target.channel.events === undefined &&
        call.patchable &&
        call.codec.passes?.(call.body, target.traits) !== false &&
        tools.reads() !== 'content' &&
        !holdsSeal(call) &&
        !needsBytes(call, call.codec, target);
      const adaptation = passes ? adapt(call, target, chosen) : 'decode';
      if (adaptation !== 'decode') {
        const losses = [...(call.get(requestLosses) ?? [])];
        const passed = passRequest(call, target, tools.reads(), losses, adaptation);
        const upstream = withoutRefused(call, target, call.codec, passed.request, losses, passed.edits);
        refuseWhenStrict(call, chosen, losses);
        const source = await next(call.with({ upstream }));
        const reply = await peekFirst(
          passReply(source, { call, target, swallowUsage: passed.usage, wholeLimit: chosen.wholeLimit }),
          call.gate,
          saysSomething,
        );
        // A response in another mode than requested is decoded, and may need the same treatment as a translated one.
        return startWithEvents(
          [attempt(target, call.codec.format, true), ...losses.map(lossEvent)],
          withNamedUnits(withBytes(reply, call, target, tools), call),
        );
      }
      return translate(withAdded(call), target, codecOf(tools, format, call, target), chosen, tools, next);
    };
  },
});

/** Returns the call with the members that plugins have added as members of its body, because all of it is decoded. */
function withAdded(call: Call): Call {
  const { addedMembers } = call.edits;
  return addedMembers === undefined ? call : call.with({ body: { ...addedMembers, ...call.body } });
}

/** Returns the formats in which this target performs the operation, best first; undefined when the gateway must perform it. */
function formatsOf(target: Target, { operation, wire }: Call): readonly string[] | undefined {
  const formats = target.channel.speaks[operation];
  if (formats === undefined && operation !== 'count-tokens') {
    throw new GatewayError(
      'endpoint_not_supported',
      `The channel for this model does not support ${wire.path}.`,
      {
        param: 'model',
      },
    );
  }
  return operation === 'chat' ? chatFormats(target) : formats;
}

/**
 * Returns true for a conversation with a proof of another provider that an earlier response carried in a container. Decoding and encoding
 * removes it.
 */
function holdsSeal({ wire, edits }: Call): boolean {
  // The outline suffices where there is one, because texts contain no seal.
  const request = edits.body === undefined ? (wire.outline?.text ?? wire.bytes) : JSON.stringify(edits.body);
  return sealMarks.some((mark) => request.includes(mark));
}

async function translate(
  call: Call,
  target: Target,
  codec: Codec,
  chosen: TranslationOptions,
  tools: InternalTools,
  next: (call: Call) => Promise<Observable<GatewayEvent>>,
): Promise<Observable<GatewayEvent>> {
  if (codec.format !== call.codec.format) refuseKept(call, call.body);
  const openingEvents = (lost: readonly Loss[]): readonly GatewayEvent[] => {
    refuseWhenStrict(call, chosen, lost);
    return [attempt(target, codec.format, false), ...lost.map(lossEvent)];
  };
  const losses = [...(call.get(requestLosses) ?? [])];
  // Drops references to the request while waiting for the response, because the garbage collector would copy it again and again.
  let written = writeUnread(call, target, codec, chosen, losses);
  if (written === undefined) {
    const request =
      codec.inlinesImages === true && isOfImages(call.request)
        ? await readImages(call, call.request, tools)
        : call.request;
    const pieces = codec.split?.(request, target.traits);
    if (pieces !== undefined && pieces.length > 1)
      return inPieces(call, pieces, { target, codec, options: chosen, next, openingEvents });
    const ready = needsBytes(call, codec, target)
      ? await inlineMedia(call, { codec, target, chosen, tools, losses })
      : call;
    written = writeRequest(ready, target, codec, chosen, losses, ready === call ? request : ready.request);
  }
  const { undoing } = written;
  const upstream = withoutRefused(call, target, codec, written.upstream, losses);
  const { stream } = upstream;
  written = undefined;
  const before = openingEvents(losses);
  const source = await next(call.with({ upstream }));
  const reply = await peekFirst(
    decodeReply(source, {
      codec,
      traits: target.traits,
      stream,
      undoing,
      wholeLimit: chosen.wholeLimit,
      estimateInput: () => estimateInput(chatOf(call)),
    }),
    call.gate,
    saysSomething,
  );
  // A provider has taken them: nobody will ask again.
  forgetMedia(call);
  return startWithEvents(before, withNamedUnits(withBytes(reply, call, target, tools), call));
}

/** Throws 400 for a request that refers to objects that only a provider of the client's format stores. */
function refuseKept({ codec }: Call, body: JsonObject): void {
  const refused = codec.onlyNative?.(body);
  if (refused !== undefined) throw refused;
}

function attempt(target: Target, format: string, passThrough: boolean): AttemptEvent {
  return { type: 'attempt', channel: target.channel.id, model: target.model, format, passThrough };
}

function lossEvent(loss: Loss): GatewayEvent {
  return { type: 'loss', loss };
}

function codecOf(tools: InternalTools, format: string, call: Call, { channel }: Target): Codec {
  const codec = codecFor(format, call.operation, channel, tools.format);
  if (codec === undefined)
    throw new Error(`The channel uses the format "${format}", which does not support ${call.operation}.`);
  return codec;
}

/** Counts tokens in the gateway if the provider has no endpoint for that. Nothing is charged. */
async function countHere(call: Call, target: Target): Promise<Observable<GatewayEvent>> {
  const tokens = await countTokens(chatOf(call));
  const here: AttemptEvent = { type: 'attempt', channel: target.channel.id, model: target.model };
  return of<GatewayEvent[]>(here, { type: 'result', value: { tokens } });
}

function refuseWhenStrict(call: Call, { strict }: TranslationOptions, losses: readonly Loss[]): void {
  if (losses.length === 0 || !(strict || call.wire.headers['x-sluice-strict'] === 'true')) return;
  throw new GatewayError(
    'unsupported_parameter',
    `The channel for this model cannot carry: ${describeLosses(losses)}.`,
    { param: losses[0]?.path ?? '' },
  );
}
