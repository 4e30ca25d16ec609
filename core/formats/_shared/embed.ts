import type { EmbedInput, EmbedRequest } from '../../model/embed.ts';
import type { Expected } from '../format.ts';

/** What embedding these inputs may use: four bytes a token, no output. */
export function expectedOfInputs({ inputs }: EmbedRequest): Expected {
  let input = 0;
  for (const one of inputs) input += tokensOf(one);
  return { input, output: 0 };
}

function tokensOf(input: EmbedInput): number {
  if (input.type === 'tokens') return input.tokens.length;
  const text = input.type === 'text' ? input.text : JSON.stringify(input.value);
  return Math.ceil(Buffer.byteLength(text) / 4);
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
