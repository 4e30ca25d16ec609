import type { JsonObject } from '../model/json.ts';
import type { KnownModel } from '../sdk/channel.ts';

/** Names of entries that are no models, but a quality and a size of one: `high/1024-x-1536/gpt-image-1`. */
const sized = /^(?:([a-z]+)\/)?(\d+)-x-(\d+)\/(?!(?:\d+|max)-steps\/)(.+)$/;

/** `sora-2-pro-high-res` is `sora-2-pro` in the sizes of 1024 lines: https://developers.openai.com/api/docs/pricing */
const highRes = /^(sora.*)-high-res$/;

type Prices = Record<string, number>;

/** Entries of a price list that say what images of a size, or videos of a resolution, cost. */
export class SizedPrices {
  readonly #images = new Map<string, Prices>();
  readonly #seconds = new Map<string, number>();

  /** Takes an entry that is of this kind; false for any other. Of two for one size that counts which names the provider (`isFull`). */
  take(provider: string, name: string, entry: JsonObject, isFull: boolean): boolean {
    const [, video] = highRes.exec(name) ?? [];
    const perSecond = entry['output_cost_per_video_per_second'];
    if (video !== undefined && typeof perSecond === 'number') {
      this.#seconds.set(`${provider} ${video}`, perSecond);
      return true;
    }
    const [, quality, width = '', height = '', model] = sized.exec(name) ?? [];
    if (model === undefined) return false;
    const price = imagePrice(entry, Number(width) * Number(height));
    if (price === undefined) return true;
    const key = `${provider} ${model}`;
    const prices = this.#images.get(key) ?? {};
    const size = `${quality === undefined ? '' : `${quality}/`}${width}x${height}`;
    if (isFull) prices[size] = price;
    else prices[size] ??= price;
    this.#images.set(key, prices);
    return true;
  }

  /** Adds the prices to models that are charged by the image, or by the second. Those that are charged by tokens have no other price. */
  addTo(provider: string, models: Map<string, KnownModel>): void {
    for (const [key, prices] of this.#images) {
      const model = ofProvider(provider, key);
      if (model === undefined) continue;
      const known = models.get(model) ?? { operation: 'generate-image' };
      const isByTokens = (known.price?.input ?? 0) > 0 || (known.price?.output ?? 0) > 0;
      if (!isByTokens)
        models.set(model, {
          ...known,
          price: { ...known.price, perImageAt: sorted({ ...known.price?.perImageAt, ...prices }) },
        });
    }
    for (const [key, perSecond] of this.#seconds) {
      const model = ofProvider(provider, key);
      const known = model === undefined ? undefined : models.get(model);
      if (model !== undefined && known?.price !== undefined)
        models.set(model, { ...known, price: { ...known.price, perSecondAt: { '1080p': perSecond } } });
    }
  }
}

function ofProvider(provider: string, key: string): string | undefined {
  return key.startsWith(`${provider} `) ? key.slice(provider.length + 1) : undefined;
}

function imagePrice(entry: JsonObject, pixels: number): number | undefined {
  const { output_cost_per_image: out, input_cost_per_image: plain, input_cost_per_pixel: pixel } = entry;
  if (typeof out === 'number') return out;
  if (typeof plain === 'number') return plain;
  // The list has divided by the pixels what is published by the image.
  return typeof pixel === 'number' && pixel > 0 ? Number((pixel * pixels).toPrecision(4)) : undefined;
}

function sorted(prices: Prices): Prices {
  return Object.fromEntries(Object.entries(prices).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
