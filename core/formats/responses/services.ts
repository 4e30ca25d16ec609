/** Counts the uses of hosted tools in a response. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Units } from '../../model/usage.ts';
import { objectsOf } from '../_shared/fields.ts';
import { tokenCount } from '../_shared/usage.ts';

type Counts = Record<string, number>;

/**
 * Returns the uses of services in a non-streamed response, from its items and from counts that some providers send. Undefined if there are
 * none.
 */
export function servicesIn(response: JsonObject): Units | undefined {
  const { output } = response;
  if (!Array.isArray(output)) return undefined;
  const counts: Counts = {};
  const containers = new Set<string>();
  for (const item of objectsOf(output as readonly JsonValue[])) countItem(item, counts, containers);
  if (containers.size > 0) counts['code-container'] = containers.size;
  addToolUsage(response.tool_usage, counts);
  if (isObject(response.usage)) addDetails(response.usage.server_side_tool_usage_details, counts);
  const used = Object.entries(counts).filter(([, uses]) => uses > 0);
  return used.length === 0 ? undefined : { services: Object.fromEntries(used) };
}

function countItem(item: JsonObject, counts: Counts, containers: Set<string>): void {
  const add = (service: string, uses = 1): void => {
    counts[service] = (counts[service] ?? 0) + uses;
  };
  switch (item.type) {
    case 'web_search_call':
      add('web-search', searchesOf(item.action));
      break;
    case 'x_search_call':
      add('x-search');
      break;
    case 'file_search_call':
      add('file-search');
      break;
    case 'image_generation_call':
      add('image-generation');
      break;
    case 'code_interpreter_call':
      containers.add(String(item.container_id));
      break;
    case 'shell_call':
      if (isObject(item.environment) && item.environment.type === 'container_reference')
        containers.add(String(item.environment.container_id));
      break;
  }
}

/** Returns the number of charged searches: one for each query. Opening a page and finding a word in it cost nothing. */
function searchesOf(action: JsonValue | undefined): number {
  if (!isObject(action)) return 1;
  if (action.type !== 'search' && action.type !== undefined) return 0;
  return Array.isArray(action.queries) ? Math.max(1, action.queries.length) : 1;
}

/** Counts of searches, and the tokens of images, which are charged in place of the images. */
function addToolUsage(toolUsage: JsonValue | undefined, counts: Counts): void {
  if (!isObject(toolUsage)) return;
  const { web_search: search, image_gen: image } = toolUsage;
  if (isObject(search) && typeof search.num_requests === 'number')
    counts['web-search'] = Math.max(counts['web-search'] ?? 0, tokenCount(search.num_requests));
  if (!isObject(image)) return;
  const [input, output] = [tokenCount(image.input_tokens), tokenCount(image.output_tokens)];
  if (output === 0) return;
  counts['image-generation'] = 0;
  counts['image-input-token'] = input;
  counts['image-output-token'] = output;
}

const detailed: Readonly<Record<string, string>> = {
  web_search_calls: 'web-search',
  x_search_calls: 'x-search',
  file_search_calls: 'file-search',
  code_interpreter_calls: 'code-container',
};

function addDetails(details: JsonValue | undefined, counts: Counts): void {
  if (!isObject(details)) return;
  for (const [member, service] of Object.entries(detailed))
    counts[service] = Math.max(counts[service] ?? 0, tokenCount(details[member]));
}
