import type { PathAlias } from '../../sdk/format.ts';

/** With a project and a location, or without them (express mode, and the list of models); the publisher; what follows `/models`. */
const address =
  /^\/v1(?:beta1)?(?:\/projects\/[^/]+\/locations\/[^/]+)?(?:\/publishers\/([^/]+))?\/models((?:\/.*)?)$/;

/** Methods in the words of other publishers. */
const foreign = /:(?:rawPredict|streamRawPredict)$/;

/**
 * Returns the addresses of Vertex AI, which has the same bodies: https://cloud.google.com/vertex-ai/docs/reference/rest. The models of other
 * publishers than Google have names that begin with the publisher.
 */
function publisherModels(prefix: string): PathAlias {
  return {
    prefix,
    resolve(path) {
      const [, publisher = 'google', rest] = address.exec(path) ?? [];
      if (rest === undefined || foreign.test(rest)) return undefined;
      const folder = publisher === 'google' || rest === '' ? '' : `/${publisher}`;
      return { path: `/v1beta/models${folder}${rest}` };
    },
  };
}

/** Addresses of Vertex AI at which this format is called. */
export const aliases: readonly PathAlias[] = ['/v1/projects/', '/v1/publishers/', '/v1beta1/'].map(
  publisherModels,
);
