/** Lists the foundation models and inference profiles of a Bedrock region through its control plane. */
import { isObject, parseObject, type HttpClient, type JsonValue } from 'sluice';

/** Maximum number of pages: more than any region has. */
const mostPages = 20;

/** Path of a list, and the members of its pages. */
interface Listing {
  readonly path: string;
  readonly member: string;
  /** Returns the name of an entry that can be called directly; undefined for others. */
  name(entry: Readonly<Record<string, JsonValue | undefined>>): JsonValue | undefined;
}

/**
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListInferenceProfiles.html
 */
const listings: readonly Listing[] = [
  {
    path: '/foundation-models',
    member: 'modelSummaries',
    // Models without on-demand access are only reached by inference profiles or provisioned throughput.
    name: ({ modelId, inferenceTypesSupported: types, modelLifecycle: life }) =>
      Array.isArray(types) && types.includes('ON_DEMAND') && !(isObject(life) && life['status'] === 'LEGACY')
        ? modelId
        : undefined,
  },
  {
    path: '/inference-profiles?maxResults=1000',
    member: 'inferenceProfileSummaries',
    name: ({ inferenceProfileId: id, status }) => (status === 'ACTIVE' ? id : undefined),
  },
  {
    // Profiles of the account are only listed on request, and identified by their ARN.
    path: '/inference-profiles?maxResults=1000&type=APPLICATION',
    member: 'inferenceProfileSummaries',
    name: ({ inferenceProfileArn: arn, status }) => (status === 'ACTIVE' ? arn : undefined),
  },
];

/** Returns the address of Bedrock's control plane that belongs to an address of its runtime; a proxy has one for both. */
export function controlPlane(runtime: string): string {
  return runtime.replace(/^(https?:\/\/(?:[\w-]+\.)?)bedrock-runtime(?=[.-])/, '$1bedrock');
}

/** Returns the foundation models that can be called on demand, and the inference profiles. `prove` returns the headers of a GET. */
export async function listBedrockModels(
  http: HttpClient,
  base: string,
  prove: (url: URL) => Promise<Readonly<Record<string, string>>>,
): Promise<readonly string[]> {
  const names: string[] = [];
  for (const { path, member, name } of listings) {
    const url = new URL(base + path);
    for (let page = 0; page < mostPages; page += 1) {
      // oxlint-disable no-await-in-loop -- a page says where the next begins
      const answer = await http.read({ url: url.href, headers: await prove(url) });
      // oxlint-enable no-await-in-loop
      const body = parseObject(answer.toString());
      const entries: unknown = body?.[member];
      if (body === undefined || !Array.isArray(entries))
        throw new Error('The response is not a list of models.');
      for (const entry of entries as readonly JsonValue[]) {
        const found = isObject(entry) ? name(entry) : undefined;
        if (typeof found === 'string') names.push(found);
      }
      const { nextToken: next } = body;
      if (typeof next !== 'string' || next === '') break;
      url.searchParams.set('nextToken', next);
    }
  }
  return names;
}
