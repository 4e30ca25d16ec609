/** Finds the deployment of SAP AI Core that runs a model, and lists the models that deployments and the orchestration service reach. */
import { GatewayError, isObject, parseObject, type HttpClient } from 'sluice';
import { objectsOf } from '../_kit/dialect/chat-dialect.ts';

/** Time in milliseconds for which a list is cached. The shorter one applies to a model that is not in it. */
const believed = 5 * 60_000;
const doubted = 10_000;

/** Purpose of a deployment. */
type Scenario = 'foundation-models' | 'orchestration';
/** Stands for the model of a deployment that has none. */
const service = '';

/** Cached list of deployments by model. Concurrent callers share one request. */
export class Deployments {
  readonly #http: HttpClient;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  #known: Promise<ReadonlyMap<string, string>> | undefined;
  #listedAt = 0;

  constructor(
    http: HttpClient,
    url: string,
    headers: Readonly<Record<string, string>>,
    scenario: Scenario = 'foundation-models',
  ) {
    this.#http = http;
    this.#url = `${url}?scenarioId=${scenario}&status=RUNNING`;
    this.#headers = headers;
  }

  async models(): Promise<readonly string[]> {
    return [...(await this.#list(0)).keys()].filter((name) => name !== service);
  }

  /** Rejects with a GatewayError for a model that no deployment runs. */
  idOf(model: string): Promise<string> {
    return this.#idOf(model, 'No deployment runs this model.');
  }

  /** Returns the deployment of a service without its own model. Rejects with a GatewayError if there is none. */
  only(): Promise<string> {
    return this.#idOf(service, 'No deployment runs the service for this model.');
  }

  async #idOf(name: string, sentence: string): Promise<string> {
    const id = (await this.#list(believed)).get(name) ?? (await this.#list(doubted)).get(name);
    if (id === undefined)
      throw new GatewayError('no_available_channel', sentence, { origin: 'upstream', retryable: true });
    return id;
  }

  #list(age: number): Promise<ReadonlyMap<string, string>> {
    const now = Date.now();
    if (this.#known === undefined || now - this.#listedAt > age) {
      this.#listedAt = now;
      this.#known = this.#read().catch((error: unknown) => {
        this.#known = undefined;
        throw error instanceof GatewayError
          ? error
          : new GatewayError('upstream_error', 'The upstream returned no deployments.', {
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
    if (!Array.isArray(body?.['resources'])) throw new Error('The response is not a list of deployments.');
    const found = new Map<string, string>();
    for (const { id, details } of objectsOf(body['resources'])) {
      const name = modelIn(details) ?? service;
      // The newest deployment comes first.
      if (typeof id === 'string' && !found.has(name)) found.set(name, id);
    }
    return found;
  }
}

/** Returns the name of the model in a deployment's details, whose members are spelled in two ways. */
function modelIn(details: unknown): string | undefined {
  const resources = isObject(details) && isObject(details['resources']) ? details['resources'] : {};
  for (const spelled of ['backend_details', 'backendDetails']) {
    const backend = resources[spelled];
    const model = isObject(backend) ? backend['model'] : undefined;
    if (isObject(model) && typeof model['name'] === 'string') return model['name'];
  }
  return undefined;
}

/**
 * Returns the names of the models that the orchestration service reaches.
 * https://github.com/SAP/ai-sdk-js/blob/main/packages/ai-api/src/client/AI_CORE_API/scenario-api.ts
 */
export async function orchestratedModels(
  http: HttpClient,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const answer = await http.read({ url, headers: { accept: 'application/json', ...headers } });
  const resources = parseObject(answer.toString())?.['resources'];
  if (!Array.isArray(resources)) throw new Error('The response is not a list of models.');
  return objectsOf(resources).flatMap(({ model, allowedScenarios: allowed }) => {
    const isReached =
      !Array.isArray(allowed) || objectsOf(allowed).some(({ scenarioId: id }) => id === 'orchestration');
    return isReached && typeof model === 'string' ? [model] : [];
  });
}
