/**
 * Checks at a running gateway that `/healthz` answers, that an API key is valid and that a model is served; finds the model's input limit.
 */
import { z } from 'zod';
import { openServices } from '../../upstream/services.ts';
import type { ServiceAnswer, Services } from '../../sdk/author/services.ts';

/** Model that the gateway serves to a key. */
export interface Served {
  readonly model: string;
  readonly inputLimit?: number;
}

const health = z.object({ status: z.string() });
const list = z.object({ data: z.array(z.object({ id: z.string() })) });
const described = z.object({ inputTokenLimit: z.number().int().positive().optional() });
const refusal = z.object({ error: z.object({ message: z.string() }) });

/** Maximum number of models in an error. */
const maxNamed = 20;

/**
 * Checks the gateway, the key and the model. Without a model it chooses the only one that the gateway lists. Throws an Error that says what
 * to do.
 */
export async function fetchServed(url: string, key: string, model: string | undefined): Promise<Served> {
  const services = openServices();
  try {
    const get = asking(services, url, key);
    await checkHealth(get, url);
    const names = await listModels(get);
    const chosen = model ?? onlyModel(names);
    const inputLimit = await limitOf(get, chosen, names);
    return { model: chosen, ...(inputLimit === undefined ? {} : { inputLimit }) };
  } finally {
    await services.close();
  }
}

type Get = (path: string, withKey?: boolean) => Promise<ServiceAnswer>;

function asking(services: Services, url: string, key: string): Get {
  return async (path, withKey = true) => {
    try {
      return await services.ask({
        url: `${url}${path}`,
        ...(withKey ? { headers: { authorization: `Bearer ${key}` } } : {}),
      });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`${why}\nStart the gateway, or set its address with --url.`, { cause: error });
    }
  };
}

async function checkHealth(get: Get, url: string): Promise<void> {
  const answer = await get('/healthz', false);
  if (answer.status === 200 && parsed(answer, health) !== undefined) return;
  throw new Error(
    `${url} is not a Sluice gateway: GET /healthz returned status ${answer.status}. Set the address of the gateway with --url, without /v1.`,
  );
}

async function listModels(get: Get): Promise<readonly string[]> {
  const answer = await get('/v1/models');
  const names = parsed(answer, list)?.data.map(({ id }) => id);
  if (answer.status === 200 && names !== undefined) return names;
  if (answer.status === 401)
    throw new Error('The gateway does not know this API key. Create one with: sluice key create --name NAME');
  if (answer.status === 403) throw new Error(`The gateway rejected this API key. ${reasonOf(answer)}`.trim());
  throw unexpected('/v1/models', answer);
}

function unexpected(path: string, answer: ServiceAnswer): Error {
  return new Error(`GET ${path} returned status ${answer.status}. ${reasonOf(answer)}`.trim());
}

function reasonOf(answer: ServiceAnswer): string {
  return parsed(answer, refusal)?.error.message ?? '';
}

function onlyModel(names: readonly string[]): string {
  const [only, ...others] = names;
  if (only !== undefined && others.length === 0) return only;
  throw new Error(`Choose a model with --model. ${shownNames(names)}`);
}

/** Returns the input limit of a model. Requests the model itself, because the list does not contain names behind aliases and patterns. */
async function limitOf(get: Get, model: string, names: readonly string[]): Promise<number | undefined> {
  const path = `/v1beta/models/${model.split('/').map(encodeURIComponent).join('/')}`;
  const answer = await get(path);
  const isKnown = answer.status === 200 || names.includes(model);
  if (!isKnown && answer.status !== 403 && answer.status !== 404) throw unexpected(path, answer);
  if (!isKnown)
    throw new Error(
      `The model "${model}" does not exist, or this API key may not use it. ${shownNames(names)}`,
    );
  return parsed(answer, described)?.inputTokenLimit;
}

function shownNames(names: readonly string[]): string {
  if (names.length === 0) return 'The gateway lists no models.';
  const more = names.length > maxNamed ? ` and ${names.length - maxNamed} more` : '';
  return `The gateway lists: ${names.slice(0, maxNamed).join(', ')}${more}`;
}

function parsed<Schema extends z.ZodType>(
  answer: ServiceAnswer,
  schema: Schema,
): z.output<Schema> | undefined {
  try {
    return schema.parse(answer.json());
  } catch {
    return undefined;
  }
}
