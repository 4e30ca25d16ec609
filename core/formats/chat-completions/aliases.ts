import type { PathAlias } from '../../sdk/format.ts';
import { decodeSegment } from '../_shared/path-segment.ts';

/** Paths behind a deployment, as the SDKs of OpenAI have them. Before one of these, a deployment may have slashes that are not encoded. */
const deployed =
  /^\/openai\/deployments\/(.+?)(\/(?:chat\/completions|completions|embeddings|images\/(?:generations|edits)|audio\/(?:transcriptions|translations|speech)))$/;
const below = /^\/openai(?:\/v1|\/deployments\/([^/]+))?(\/.+)$/;

/**
 * Azure OpenAI serves the paths of OpenAI below `/openai/v1`, before that below `/openai` with the model as a deployment in the path, and
 * a date in the query: https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
const azure: PathAlias = {
  prefix: '/openai/',
  resolve(path, query) {
    const [, deployment, rest = ''] = deployed.exec(path) ?? below.exec(path) ?? [];
    if (rest === '') return undefined;
    const resolved = { path: `/v1${rest}`, query: withoutVersion(query) };
    if (deployment === undefined) return resolved;
    // Azure OpenAI uses the deployment in the path and ignores the model in the body.
    const model = decodeSegment(deployment);
    return model === undefined ? undefined : { ...resolved, members: { model } };
  },
};

/** Returns the query without the version of the API. A session names its deployment there, which is its model. */
function withoutVersion(query: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams(query);
  kept.delete('api-version');
  const deployment = kept.get('deployment');
  if (deployment === null) return kept;
  kept.delete('deployment');
  kept.set('model', deployment);
  return kept;
}

/**
 * Returns the chat completions of Vertex AI, for all models of its model garden:
 * https://cloud.google.com/vertex-ai/generative-ai/docs/start/openai
 */
function openApi(prefix: string): PathAlias {
  return {
    prefix,
    resolve(path) {
      const [, rest] =
        /^\/[^/]+\/projects\/[^/]+\/locations\/[^/]+\/endpoints\/openapi(\/.+)$/.exec(path) ?? [];
      return rest === undefined ? undefined : { path: `/v1${rest}` };
    },
  };
}

/** Addresses of clouds at which the APIs of the OpenAI family are called. */
export const aliases: readonly PathAlias[] = [azure, openApi('/v1/projects/'), openApi('/v1beta1/projects/')];
