import { z } from 'zod';
import { defineChannel, GatewayError, type HttpClient } from 'sluice';
import { isObject, parseObject, type ChannelParts, type ChannelTools } from 'sluice/internal';
import { bearerTokens } from './_access-tokens.ts';
import { authorized } from './_authorized.ts';
import { objectsOf } from './_chat-dialect.ts';
import { overHttp } from './_http.ts';
import { oauthTokens } from './_oauth-tokens.ts';

const serviceKey = z.object({
  clientid: z.string().min(1),
  clientsecret: z.string().min(1),
  url: z.url(),
  serviceurls: z.object({ AI_API_URL: z.url() }),
});

/**
 * SAP AI Core: models that run in deployments of a resource group, found by the names of their models. Those of Azure OpenAI and the open
 * ones that SAP serves; Claude, Gemini and Nova have other words there, and are not reached.
 * https://github.com/SAP-docs/sap-artificial-intelligence/blob/main/docs/sap-ai-core/consume-generative-ai-models-bf0373b.md
 */
export default defineChannel({
  name: 'sap-ai-core',
  needsKey: false,
  models: 'discover',
  options: z.object({
    serviceKey: z
      .union([
        serviceKey,
        z
          .string()
          .transform((text) => parseObject(text))
          .pipe(serviceKey),
      ])
      .optional()
      .describe('the service key of the instance: the object, or the text of its JSON'),
    resourceGroup: z.string().min(1).default('default'),
    apiVersion: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2}(-preview)?$/, 'must be a date such as 2024-10-21')
      .default('2024-10-21')
      .describe('version of the API of Azure OpenAI, for its models'),
  }),
  setup({ serviceKey: own, resourceGroup, apiVersion, ...options }, tools: ChannelTools): ChannelParts {
    if (own === undefined && options.baseUrl === undefined)
      throw new Error(
        "serviceKey is missing. Give that of your instance: serviceKey: env('AICORE_SERVICE_KEY').",
      );
    const base = `${(options.baseUrl ?? own?.serviceurls.AI_API_URL ?? '').replace(/\/+$/, '')}/v2`;
    const account = own === undefined ? tools : signedIn(tools, own);
    const headers = { 'ai-resource-group': resourceGroup };
    const { open } = overHttp({ ...options, baseUrl: base }, account, {
      baseUrl: base,
      headers: () => headers,
      speaks: {},
    });
    const deployments = new Deployments(account.http, `${base}/lm/deployments`, headers);
    return {
      speaks: { chat: ['chat-completions'], embed: ['embeddings'] },
      traits: (model) =>
        ofAzure(model)
          ? { refuses: ['topK', 'customTools'] }
          : { reasoning: 'none', outputLimitField: 'max_tokens', refuses: ['customTools'] },
      listModels: () => deployments.models(),
      async open(call, request) {
        const id = await deployments.idOf(request.model);
        return open(call, {
          ...request,
          path: `/inference/deployments/${encodeURIComponent(id)}${request.path}`,
          query: ofAzure(request.model) ? { ...request.query, 'api-version': apiVersion } : request.query,
        });
      },
    };
  },
});

/** The models of Azure OpenAI have the names that they have there; all others begin with their maker's and two dashes. */
function ofAzure(model: string): boolean {
  return !model.includes('--');
}

function signedIn(
  tools: ChannelTools,
  { clientid, clientsecret, url }: z.output<typeof serviceKey>,
): ChannelTools {
  const ask = oauthTokens(tools.http, {
    who: 'SAP’s authorization server',
    url: `${url.replace(/\/+$/, '')}/oauth/token`,
    form: { grant_type: 'client_credentials', client_id: clientid, client_secret: clientsecret },
    shown: 'the service key in the config',
    advice: 'Check that the service key is complete and has not been deleted.',
  });
  return authorized({ ...tools, keys: [] }, bearerTokens(ask, tools.log));
}

/** Milliseconds for which a list is believed; for how long where a model is not in it. */
const believed = 5 * 60_000;
const doubted = 10_000;

/** Which deployment runs which model. However many ask, the list is read once. */
class Deployments {
  readonly #http: HttpClient;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  #known: Promise<ReadonlyMap<string, string>> | undefined;
  #asked = 0;

  constructor(http: HttpClient, url: string, headers: Readonly<Record<string, string>>) {
    this.#http = http;
    this.#url = `${url}?scenarioId=foundation-models&status=RUNNING`;
    this.#headers = headers;
  }

  async models(): Promise<readonly string[]> {
    return [...(await this.#list(0)).keys()];
  }

  /** Rejects with a GatewayError for a model that no deployment runs. */
  async idOf(model: string): Promise<string> {
    const id = (await this.#list(believed)).get(model) ?? (await this.#list(doubted)).get(model);
    if (id === undefined)
      throw new GatewayError('no_available_channel', 'No deployment runs this model.', {
        origin: 'upstream',
        retryable: true,
      });
    return id;
  }

  #list(age: number): Promise<ReadonlyMap<string, string>> {
    const now = Date.now();
    if (this.#known === undefined || now - this.#asked > age) {
      this.#asked = now;
      this.#known = this.#read().catch((error: unknown) => {
        this.#known = undefined;
        throw error instanceof GatewayError
          ? error
          : new GatewayError('upstream_error', 'The upstream did not tell its deployments.', {
              origin: 'upstream',
              retryable: true,
              cause: error,
            });
      });
    }
    return this.#known;
  }

  async #read(): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#http.read({
      url: this.#url,
      headers: { accept: 'application/json', ...this.#headers },
    });
    const body = parseObject(answer.toString());
    if (!Array.isArray(body?.['resources'])) throw new Error('The answer is no list of deployments.');
    const found = new Map<string, string>();
    for (const { id, details } of objectsOf(body['resources'])) {
      const name = modelIn(details);
      // The newest stands first.
      if (typeof id === 'string' && name !== undefined && !found.has(name)) found.set(name, id);
    }
    return found;
  }
}

/** The name of the model in a deployment's details, whose members are spelled in two ways. */
function modelIn(details: unknown): string | undefined {
  const resources = isObject(details) && isObject(details['resources']) ? details['resources'] : {};
  for (const spelled of ['backend_details', 'backendDetails']) {
    const backend = resources[spelled];
    const model = isObject(backend) ? backend['model'] : undefined;
    if (isObject(model) && typeof model['name'] === 'string') return model['name'];
  }
  return undefined;
}
