import type { GatewayRequest } from '../../model/request.ts';
import { requiredModel } from './check.ts';
import type { Codec } from '../../sdk/format.ts';

/**
 * Members of a codec whose operation has one request and one whole reply. Any other member of `Codec` may be added, and replaces the usual
 * one.
 *
 * @example
 * const spec: CodecSpec<EmbedRequest> = { ...embedCodec, format: 'acme', path: '/embed', encodeRequest: writeRequest };
 */
export type CodecSpec<R extends GatewayRequest> = Pick<
  Codec<R>,
  'format' | 'operation' | 'encodeRequest' | 'decodeWhole'
> &
  Partial<Codec<R>> & {
    /** Below the provider's base URL: `/embeddings`. */
    readonly path: string;
  };

/**
 * Makes a codec for an operation with one request and one whole reply, such as `embed`, `rerank`, `speak`, `transcribe` or `generate-
 * image`. A channel gives it as `codecs: { embed: codec }`, and names its format in `speaks: { embed: ['acme'] }`.
 * A codec whose format no client writes needs neither `decodeRequest` nor `encodeWhole`.
 *
 * @example
 * const codec = defineCodec<EmbedRequest>({
 *   ...embedCodec,
 *   format: 'acme',
 *   path: '/embed',
 *   encodeRequest: ({ inputs }, { model }) => ({ path: '/embed', body: { model, texts: inputs.map(requireText) } }),
 *   decodeWhole(body) {
 *     throwIfError(body);
 *     if (!Array.isArray(body.vectors)) throw unusableResponse('sent no vectors');
 *     return [
 *       { type: 'result', value: { vectors: readVectors(body.vectors) } },
 *       { type: 'usage', usage: readTokenUsage(body, 'acme') },
 *     ];
 *   },
 * });
 */
export function defineCodec<R extends GatewayRequest>({ path, ...own }: CodecSpec<R>): Codec<R> {
  return {
    upstreamFraming: 'none',
    marks: { usage: ['"usage":{', '"usage": {'], terminal: [] },
    toleratesComments: true,
    peek: ({ model }) => ({ model: requiredModel(model), stream: false }),
    validate: (body, params) => (own.decodeRequest ?? noClient)(body, params),
    decodeRequest: noClient,
    encodeWhole: noClient,
    clientFraming: () => 'none',
    patch: (body, { model }) => (model === undefined ? body : { ...body, model }),
    passThrough: () => ({ path }),
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name) => name,
    ...own,
  };
}

/** The half of a codec that a format for clients has, where the words are a provider's own. */
export function noClient(): never {
  throw new Error('No client speaks the words of this channel.');
}
