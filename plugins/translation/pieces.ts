import { from, type Observable } from 'rxjs';
import {
  gathered,
  sumUsage,
  type GatewayEvent,
  type GatewayRequest,
  type UpstreamRequest,
  type Usage,
  type Loss,
  type OperationResult,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import type { Call, Next, Target } from 'sluice/internal';
import { decodeReply } from './decode-reply.ts';
import { encodeRequest, upstreamRequest, type Encoded } from './encode-request.ts';
import { withoutRefused } from './refused-members.ts';
import { undoingOf } from './undo-spelling.ts';
import type { TranslationOptions } from './options.ts';

/** Maximum number of pieces that run at once. */
const atOnce = 4;

/** Options that all pieces of one request share. */
interface PieceOptions {
  readonly target: Target;
  /** The codec that speaks to the provider. */
  readonly codec: Codec;
  readonly options: TranslationOptions;
  readonly next: Next;
  /** Returns the events that precede the response. Throws where the dropped fields forbid the request. */
  readonly openingEvents: (losses: readonly Loss[]) => readonly GatewayEvent[];
}

/** Sends a request that the provider accepts only in pieces: a few at once, merged into one response. The first failure fails the call. */
export async function inPieces(
  call: Call,
  pieces: readonly GatewayRequest[],
  { target, codec, options, next, openingEvents }: PieceOptions,
): Promise<Observable<GatewayEvent>> {
  const losses: Loss[] = [];
  const encoded = pieces.map((piece) => encodeRequest(call, target, codec, options, losses, piece));
  const written = (one: Encoded, lost: Loss[]): UpstreamRequest =>
    withoutRefused(call, target, codec, upstreamRequest(call, target, codec, one), lost);
  // All parts have the same settings. Each is encoded just before it is sent, to save memory.
  const [first] = encoded;
  if (first !== undefined && target.traits.refusedMembers !== undefined) written(first, losses);
  const before = openingEvents(losses);
  const results: (OperationResult | undefined)[] = [];
  const usages: (Usage | undefined)[] = encoded.map(() => undefined);
  let nextIndex = 0;
  const work = async (): Promise<void> => {
    for (let index = nextIndex; index < encoded.length; index = nextIndex) {
      nextIndex += 1;
      const one = encoded[index];
      if (one === undefined) return;
      const upstream = written(one, []);
      // Each piece is a call of this plugin's own, whose reply it reads itself.
      // oxlint-disable-next-line no-await-in-loop -- so many at once as there are workers
      const source = await next(call.with({ upstream, decoded: true }));
      const reply = decodeReply(source, {
        codec,
        traits: target.traits,
        stream: false,
        undoing: undoingOf(one),
        wholeLimit: options.wholeLimit,
      });
      // oxlint-disable-next-line no-await-in-loop -- as above
      for (const event of await gathered(call, reply)) {
        if (event.type === 'result') results[index] = event.value;
        if (event.type === 'usage') usages[index] = event.usage;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, encoded.length) }, work));
  const sound = results.filter((result) => result !== undefined);
  if (codec.join === undefined) throw new Error(`${codec.format} splits requests but joins no results.`);
  return from([...before, { type: 'result', value: codec.join(sound) } as const, ...usageOf(usages)]);
}

/** Returns the usage of all pieces as one event; none where the provider reports none for some, so that the whole request is estimated. */
function usageOf(usages: readonly (Usage | undefined)[]): readonly GatewayEvent[] {
  const reported = usages.filter((one) => one !== undefined);
  if (reported.length < usages.length) return [];
  return [{ type: 'usage', usage: reported.reduce((sum, one) => sumUsage(sum, one)) }];
}
