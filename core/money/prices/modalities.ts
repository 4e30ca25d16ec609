/** Prices of tokens by modality (text, audio, image, video): splits usage into modalities and sums their cost. */
import { modalities, type Modality, type TokensByModality, type UsageByModality } from '../../model/usage.ts';
import type { TokenPrices } from '../../settings/prices.ts';
import { count, largest, pico } from './amounts.ts';

/** Modalities that the input and the output of a call may have besides text. Absent: any. */
export interface PossibleMedia {
  readonly input?: ReadonlySet<Modality>;
  readonly output?: ReadonlySet<Modality>;
}

/** Numbers of tokens, without those that are counted elsewhere: the input without caches, the output without reasoning. */
export interface PlainTokens {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
}

type Parts = 'input' | 'cacheRead' | 'output';
type PricesOf = Readonly<Record<Modality | 'general', bigint>>;

/** Order in which modalities are counted when their tokens exceed the total. */
const order = ['audio', 'image', 'video', 'text'] as const;

/** The prices of one row by modality. */
export class ModalityPrices {
  readonly #prices: Readonly<Record<Parts, PricesOf>>;

  private constructor(prices: Readonly<Record<Parts, PricesOf>>) {
    this.#prices = prices;
  }

  /** Returns undefined for prices that are the same for all modalities. `cacheRead` is the price of cached tokens. */
  static of(prices: TokenPrices, cacheRead: number): ModalityPrices | undefined {
    const { input = 0, output = 0 } = prices;
    const own: TokenPrices = { ...prices, input, cacheRead, output };
    const names = Object.keys(prices) as (keyof TokenPrices)[];
    if (!names.some((name) => prices[name] !== undefined && /[a-z](?:Text|Audio|Image|Video)$/.test(name)))
      return undefined;
    return new ModalityPrices({
      input: pricesOf('input', own),
      cacheRead: pricesOf('cacheRead', own),
      output: pricesOf('output', own),
    });
  }

  /** Returns the cost in 1e-12 dollars. Tokens without a modality have the price of the row's own `input`, `cacheRead` or `output`. */
  cost({ input, cacheRead, output }: UsageByModality, tokens: PlainTokens): bigint {
    const cached = cacheRead ?? textFirst(input, tokens.cacheRead);
    const fresh = input && without(input, cached, tokens.cacheWrite);
    return (
      split(tokens.input, fresh, this.#prices.input) +
      split(tokens.cacheRead, cached, this.#prices.cacheRead) +
      split(tokens.output, output, this.#prices.output)
    );
  }

  /** Returns the highest price of an input token, cached or not, and of an output token. */
  highest({ input, output }: PossibleMedia): { readonly input: bigint; readonly output: bigint } {
    const of = (part: Parts, possible: ReadonlySet<Modality> | undefined): bigint => {
      const prices = this.#prices[part];
      const reachable = modalities.filter(
        (one) => one === 'text' || possible === undefined || possible.has(one),
      );
      return largest(prices.general, ...reachable.map((one) => prices[one]));
    };
    return { input: largest(of('input', input), of('cacheRead', input)), output: of('output', output) };
  }
}

function pricesOf(part: Parts, prices: TokenPrices): PricesOf {
  const general = prices[part] ?? 0;
  const of = (suffix: 'Text' | 'Audio' | 'Image' | 'Video'): bigint => {
    // A cached token without a price of its own costs what a fresh one of its modality costs.
    const fresh = part === 'cacheRead' ? prices[`input${suffix}`] : undefined;
    const fallback = fresh !== undefined && suffix !== 'Text' ? fresh : general;
    return pico(prices[`${part}${suffix}`] ?? fallback, 6);
  };
  return {
    general: pico(general, 6),
    text: of('Text'),
    audio: of('Audio'),
    image: of('Image'),
    video: of('Video'),
  };
}

function split(total: number, parts: TokensByModality | undefined, prices: PricesOf): bigint {
  let rest = count(total);
  let sum = 0n;
  for (const modality of parts === undefined ? [] : order) {
    const tokens = Math.min(rest, count(parts?.[modality] ?? 0));
    rest -= tokens;
    if (tokens > 0) sum += BigInt(tokens) * prices[modality];
  }
  return sum + BigInt(rest) * prices.general;
}

/** Returns the modalities of cached tokens where the provider reports none: text first. */
function textFirst(input: TokensByModality | undefined, cached: number): TokensByModality | undefined {
  if (input === undefined || cached === 0) return undefined;
  const parts: { [M in Modality]?: number } = {};
  let rest = cached;
  for (const modality of modalities) {
    const tokens = Math.min(rest, count(input[modality] ?? 0));
    if (tokens > 0) parts[modality] = tokens;
    rest -= tokens;
  }
  return parts;
}

function without(
  input: TokensByModality,
  cached: TokensByModality | undefined,
  written: number,
): TokensByModality {
  const rest = (modality: Modality): number =>
    Math.max(0, count(input[modality] ?? 0) - count(cached?.[modality] ?? 0));
  return {
    text: Math.max(0, rest('text') - written),
    audio: rest('audio'),
    image: rest('image'),
    video: rest('video'),
  };
}
