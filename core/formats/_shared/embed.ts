import type { EmbedRequest, EmbedResult } from '../../model/embed.ts';
import type { Expected } from '../../sdk/format.ts';

/** What providers write around each input: what it is for, where it begins and ends. */
const frame = 16;

/** What embedding these inputs may use: four bytes a token, one at the most; no output. */
export function expectedOfInputs({ inputs, title = '' }: EmbedRequest): Expected {
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

/** A request in pieces of at most so many inputs. */
export function splitInputs(request: EmbedRequest, most: number): readonly EmbedRequest[] {
  const { inputs } = request;
  if (inputs.length <= most) return [request];
  return Array.from({ length: Math.ceil(inputs.length / most) }, (_, piece) => ({
    ...request,
    inputs: inputs.slice(piece * most, (piece + 1) * most),
  }));
}

/** What the pieces of a request were answered, as one answer. */
export function joinVectors(results: readonly unknown[]): EmbedResult {
  return { vectors: results.flatMap((result) => (result as EmbedResult).vectors) };
}
