import type { PathAlias, ResolvedAlias } from '../../sdk/format.ts';
import { decodeSegment } from '../_shared/path-segment.ts';

/** Project and location, model, method. The name of a model may have colons and slashes, encoded or not. */
const address =
  /^\/v1(?:beta1)?\/projects\/[^/]+\/locations\/[^/]+\/publishers\/anthropic\/models\/(.+):(rawPredict|streamRawPredict)$/;

/** A model of this name counts tokens; the body then names the model whose tokens are counted. */
const counter = 'count-tokens';

/**
 * Returns the path alias of Vertex AI. Its body has no model, which is in the path, but has the API version, which is a header elsewhere:
 * https://docs.claude.com/en/api/claude-on-vertex-ai
 */
function rawPredict(prefix: string): PathAlias {
  return {
    prefix,
    resolve(path) {
      const [, name, method] = address.exec(path) ?? [];
      const model = name === undefined ? undefined : decodeSegment(name);
      if (model === undefined) return undefined;
      if (model === counter) return { path: '/v1/messages/count_tokens', header };
      const stream = method === 'streamRawPredict' ? { stream: true } : {};
      return { path: '/v1/messages', header, members: { model, ...stream } };
    },
  };
}

const header: NonNullable<ResolvedAlias['header']> = {
  member: 'anthropic_version',
  name: 'anthropic-version',
  // The word of Vertex AI for its one version stands for the first date; newer SDKs send the date that they would send as a header.
  value: (member) => (typeof member === 'string' && /^\d{4}-/.test(member) ? member : '2023-06-01'),
};

/** Addresses of Vertex AI at which this format is called. */
export const aliases: readonly PathAlias[] = [rawPredict('/v1/projects/'), rawPredict('/v1beta1/projects/')];
