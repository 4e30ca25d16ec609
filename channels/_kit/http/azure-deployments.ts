/** Lists the deployments of an Azure AI resource through Azure Resource Manager, and defines the channel options for that. */
import { z } from 'zod';
import { secretUrl, isObject, parseObject, type ChannelTools } from 'sluice';
import { withAuthorization, bearerTokens } from 'sluice/channel-kit';
import { entraTokens, type EntraIdentity } from '../identity/entra.ts';
import { objectsOf } from '../dialect/chat-dialect.ts';

/** Maximum number of pages: more than a resource can have. */
const mostPages = 20;
const version = '2024-10-01';

/** Channel options that name the resource whose deployments are listed. */
export const azureListing = {
  resourceId: z
    .string()
    .regex(
      /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.CognitiveServices\/accounts\/[^/]+$/i,
      'must be the id of a resource: /subscriptions/…/resourceGroups/…/providers/Microsoft.CognitiveServices/accounts/NAME',
    )
    .optional()
    .describe('id of the resource whose deployments are listed. `identity` must be allowed to read it'),
  managementUrl: secretUrl(z.url())
    .default('https://management.azure.com')
    .describe('URL of Azure Resource Manager, for national clouds'),
};

interface Listing {
  readonly resourceId: string | undefined;
  readonly managementUrl: string;
  readonly identity: EntraIdentity | undefined;
}

/**
 * Asks Azure Resource Manager for the names of the deployments that are ready; no other list has them, that of the resource itself being
 * of models. Undefined where it is not said which resource is meant.
 * https://learn.microsoft.com/en-us/rest/api/aiservices/accountmanagement/deployments/list
 */
export function azureDeployments(
  tools: ChannelTools,
  { resourceId, managementUrl, identity }: Listing,
): (() => Promise<readonly string[]>) | undefined {
  if (resourceId === undefined) return undefined;
  if (identity === undefined)
    throw new Error(
      "resourceId needs an identity that may read the resource: identity: { kind: 'default' }.",
    );
  const manager = managementUrl.replace(/\/+$/, '');
  const { http } = withAuthorization(
    { ...tools, keys: [] },
    bearerTokens(entraTokens(identity, `${manager}/.default`), tools.log),
  );
  return async () => {
    const names: string[] = [];
    let url = `${manager}${resourceId}/deployments?api-version=${version}`;
    for (let page = 0; page < mostPages; page += 1) {
      // oxlint-disable-next-line no-await-in-loop -- a page says where the next begins
      const answer = await http.read({ url, headers: { accept: 'application/json' } }).catch(unread);
      const { value, nextLink: next } = parseObject(answer.toString()) ?? {};
      if (!Array.isArray(value)) throw new Error('The response is not a list of deployments.');
      for (const { name, properties } of objectsOf(value)) {
        const state = isObject(properties) ? properties['provisioningState'] : undefined;
        if (typeof name === 'string' && state === 'Succeeded') names.push(name);
      }
      if (typeof next !== 'string' || next === '') break;
      // The token goes nowhere else.
      if (!next.startsWith(`${manager}/`)) throw new Error('The next page of the list has another host.');
      url = next;
    }
    return names;
  };
}

function unread(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  throw new Error(
    `Azure Resource Manager did not list the deployments: ${message} Give the identity a role that may read the resource, such as Cognitive Services OpenAI User, and check resourceId.`,
    { cause: error },
  );
}
