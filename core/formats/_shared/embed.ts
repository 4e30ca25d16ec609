/** Channel kit for embeddings: token estimate for budgets, and splitting of requests with more inputs than a provider takes. */
import type { EmbedRequest, EmbedResult } from '../../model/embed.ts';
import type { Expected } from '../../sdk/format.ts';

/** Maximum number of tokens that providers add around each input: its purpose, its beginning and end. */
const frame = 16;

/**
 * Estimates input tokens for budgets: one token per 4 bytes expected, one token per byte as the upper bound. Output is 0.
 *
 * @example
 * estimate: estimateEmbed,
 */
export function estimateEmbed({ inputs, title = '' }: EmbedRequest): Expected {
  let input = 0;
  let most = Buffer.byteLength(title) * inputs.length;
  for (const one of inputs) {
    if (one.type === 'tokens') {
      input += one.tokens.length;
      most += one.tokens.length + frame;
    } else {
      const bytes = Buffer.byteLength(one.type === 'text' ? one.text : JSON.stringify(one.value));
      input += Math.ceil(bytes / 4);
      most += bytes + frame;
    }
  }
  return { input, output: 0, most: { input: most } };
}

/**
 * Splits a request into requests of at most `most` inputs. The gateway sends up to 4 of them at the same time. The first error fails the
 * call.
 *
 * @example
 * split: (request) => splitEmbed(request, 96),
 * join: joinEmbed,
 */
export function splitEmbed(request: EmbedRequest, most: number): readonly EmbedRequest[] {
  const { inputs } = request;
  if (inputs.length <= most) return [request];
  return Array.from({ length: Math.ceil(inputs.length / most) }, (_, piece) => ({
    ...request,
    inputs: inputs.slice(piece * most, (piece + 1) * most),
  }));
}

/**
 * Joins the results of the requests that `splitEmbed` made, in their order.
 *
 * @example
 * join: joinEmbed,
 */
export function joinEmbed(results: readonly unknown[]): EmbedResult {
  return { vectors: results.flatMap((result) => (result as EmbedResult).vectors) };
}
