/** The addresses of Gemini's Live API, at the Gemini API and at Vertex AI. */
import type { ChannelParts, ChannelTools } from 'sluice';
import { liveSessions } from './sockets.ts';

type Live = Pick<ChannelParts, 'connect' | 'watch'>;

/** Returns sessions at the Gemini API, whose socket stands beside the version: @google/genai 2.32.0, dist/node/index.mjs, `Live.connect`. */
export function geminiLive(baseUrl: string, tools: ChannelTools): Live {
  const [root, version] = socketRoot(baseUrl);
  const url = `${root}/ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`;
  return liveSessions(
    {
      url(call) {
        const key = tools.keys[call.target?.key.index ?? 0];
        return key === undefined ? url : `${url}?key=${encodeURIComponent(key)}`;
      },
      headers: () => ({}),
      resource: (model) => `models/${model}`,
    },
    tools,
  );
}

/** Location and project of Vertex AI, for sessions. */
export interface VertexLocation {
  readonly baseUrl: string;
  /** Undefined in express mode, which has a key. */
  readonly project: string | undefined;
  readonly location: string;
  readonly apiVersion: string;
}

/** Returns sessions at Vertex AI: @google/genai 2.32.0, dist/node/index.mjs, `Live.connect`. */
export function vertexLive(
  { baseUrl, project, location, apiVersion }: VertexLocation,
  tools: ChannelTools,
): Live {
  const [root] = socketRoot(baseUrl);
  const isExpress = tools.keys.length > 0;
  return liveSessions(
    {
      url: () => `${root}/ws/google.cloud.aiplatform.${apiVersion}.LlmBidiService/BidiGenerateContent`,
      headers(call) {
        const key = tools.keys[call.target?.key.index ?? 0];
        return key === undefined ? {} : { 'x-goog-api-key': key };
      },
      resource: (model) =>
        `${isExpress ? '' : `projects/${project ?? ''}/locations/${location}/`}publishers/google/models/${model}`,
      refusesCallIds: true,
    },
    tools,
  );
}

/** Returns the address up to the version, for sockets, and the version. */
function socketRoot(baseUrl: string): readonly [root: string, version: string] {
  const url = new URL(baseUrl);
  const [, path = '', version = 'v1beta'] =
    /^(.*?)(?:\/(v\d[a-z\d]*)(?:\/.*)?)?$/.exec(url.pathname.replace(/\/+$/, '')) ?? [];
  return [`${url.protocol === 'http:' ? 'ws:' : 'wss:'}//${url.host}${path}`, version];
}
