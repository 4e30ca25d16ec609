/** Compacts long conversations for clients that request it, with models of every format. */
import { z } from 'zod';
import { definePlugin, chatFormats, type Call } from 'sluice';
import { compact } from './compact.ts';
import { create } from './create.ts';
import { itemsOf } from './items.ts';
import { opened } from './seals.ts';
import { format, ownerOf, type Work } from './work.ts';

const options = z.strictObject({
  /** Number of context tokens from which a conversation is compacted, if the client sets none and the model's limit is unknown. */
  threshold: z.int().min(1).default(100_000),
  /** Share of the model's context limit from which a conversation is compacted, if the client sets none. */
  share: z.number().gt(0).max(1).default(0.8),
});

/**
 * Compacts conversations that outgrow a model's context, on every channel: by `POST /v1/responses/compact`, `context_management` or a
 * `compaction_trigger`. If the provider does not support compaction, the model writes a summary. The client stores it as a sealed item and
 * sends it back.
 */
export default definePlugin({
  name: 'compaction',
  stage: 'translate',
  before: ['continuation', 'learned-refusals', 'parallel-choices', 'translation', 'reasoning-vault'],
  options,
  async setup({ threshold, share }, { openSealer, chatCodec }) {
    const sealer = await openSealer();
    return function compaction(call, next) {
      if (call.codec.format !== format || !concerns(call)) return next(call);
      const { target } = call;
      const codec = chatCodec(format);
      if (target === undefined || codec === undefined) return next(call);
      const written = itemsOf(call.body);
      const items = opened(written, {
        sealer,
        owner: ownerOf(call),
        native: chatFormats(target).includes(format),
      });
      const changed = items !== written;
      if (call.operation === 'count-tokens') {
        const { context_management: management, ...body } = call.body;
        return next(
          changed
            ? call.with({ body: { ...body, input: items } })
            : management === undefined
              ? call
              : call.with({ body }),
        );
      }
      const limit = target.traits.inputLimit;
      const work: Work = {
        call,
        next,
        target,
        codec,
        sealer,
        items,
        written: written.length,
        changed,
        threshold: limit === undefined ? threshold : Math.floor(limit * share),
      };
      return call.operation === 'compact' ? compact(work) : create(work);
    };
  },
});

/** Returns false when nothing is compacted and nothing was: then the words of a long context need not be read. */
function concerns(call: Call): boolean {
  const { operation, bodyOutline } = call;
  return (
    operation === 'compact' ||
    bodyOutline.context_management !== undefined ||
    itemsOf(bodyOutline).some(({ type }) => typeof type === 'string' && type.startsWith('compaction'))
  );
}
