/** Builds codecs for operations that have no stream, such as embeddings and rerank, from a few members and defaults for the rest. */
import type { GatewayRequest } from '../../model/request.ts';
import { requiredModel } from './check.ts';
import type { Codec } from '../../sdk/format.ts';

/**
 * Members of a codec whose operation has one request and one whole reply. Any other member of `Codec` may be added, and replaces the usual
 * one.
 *
 * @example
 * const spec: CodecSpec<EmbedRequest> = { format: 'acme', operation: 'embed', encodeRequest, decodeWhole, estimate: estimateEmbed };
 */
export type CodecSpec<R extends GatewayRequest> = Pick<
  Codec<R>,
  'format' | 'operation' | 'encodeRequest' | 'decodeWhole'
> &
  Partial<Codec<R>> & {
    /** Path below the provider's base URL of requests that pass through unchanged: `/embeddings`. Only for formats that clients use. */
    readonly path?: string;
  };

/**
 * Makes a codec for an operation with one request and one whole reply, such as `embed`, `rerank`, `speak`, `transcribe` or `generate-
 * image`. A channel gives it as `codecs: { embed: codec }`, and names its format in `speaks: { embed: ['acme'] }`.
 * A codec whose format no client uses needs neither `path` nor `decodeRequest` nor `encodeWhole`.
 *
 * @example
 * const codec = defineCodec<EmbedRequest>({
 *   format: 'acme',
 *   operation: 'embed',
 *   encodeRequest: ({ inputs }, { model }) => ({ path: '/embed', body: { model, texts: inputs.map(requireText) } }),
 *   decodeWhole(body) {
 *     throwIfError(body);
 *     if (!Array.isArray(body.vectors)) throw unusableResponse('sent no vectors');
 *     return [
 *       { type: 'result', value: { vectors: readVectors(body.vectors) } },
 *       ...(isObject(body.usage) ? [{ type: 'usage' as const, usage: readTokenUsage(body.usage, 'acme') }] : []),
 *     ];
 *   },
 *   estimate: estimateEmbed,
 *   join: joinEmbed,
 * });
 */
export function defineCodec<R extends GatewayRequest>({ path, ...own }: CodecSpec<R>): Codec<R> {
  const { format } = own;
  const passThrough = path === undefined ? absentMember(format, 'path') : () => ({ path });
  return {
    upstreamFraming: 'none',
    marks: { usage: ['"usage":{', '"usage": {'], terminal: [] },
    toleratesComments: true,
    peek: ({ model }) => ({ model: requiredModel(model), stream: false }),
    validate: (body, params) => (own.decodeRequest ?? absentMember(format, 'decodeRequest'))(body, params),
    decodeRequest: absentMember(format, 'decodeRequest'),
    encodeWhole: absentMember(format, 'encodeWhole'),
    clientFraming: () => 'none',
    patch: (body, { model }) => (model === undefined ? body : { ...body, model }),
    passThrough,
    usageTap: () => ({ read: () => undefined }),
    settingPath: (name) => name,
    ...own,
  };
}

/** Returns a function that throws, in place of a member that only codecs of formats for clients have. */
export function absentMember(format: string, member: string): () => never {
  return () => {
    throw new Error(
      `Codec "${format}" has no ${member}, because it only encodes for providers. Add ${member} if clients use this format.`,
    );
  };
}
