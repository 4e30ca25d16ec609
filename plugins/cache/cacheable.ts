/** Decides whether a request is cached, and gives the reason where it is not. */
import { isChat, type Block, type Call, type ChatRequest, type GatewayRequest } from 'sluice';
import type { CacheOptions } from './options.ts';

/** Reason why a request is not cached, as in the metrics. */
export type Obstacle = 'state' | 'file' | 'hosted-tool' | 'choices' | 'media' | 'temperature' | 'number';

/** Operations whose responses are cached. */
const operations: ReadonlySet<Call['operation']> = new Set<Call['operation']>([
  'chat',
  'embed',
  'rerank',
  'moderate',
]);

/** Members of requests that refer to state at the provider, so that an equal request may have another response later. */
const references: ReadonlySet<string> = new Set([
  'previous_response_id',
  'conversation',
  'background',
  'generate',
  'prompt',
  'container',
  'cachedContent',
  'session_id',
]);

/** Members that make a provider search or call tools without an entry in `tools`. */
const lookups: ReadonlySet<string> = new Set([
  'mcp_servers',
  'plugins',
  'search_parameters',
  'web_search_options',
  'enable_search',
]);

/** Returns true for an operation whose responses are cached. */
export function isCachedOperation(operation: Call['operation']): boolean {
  return operations.has(operation);
}

/** Returns the reason why a request is not cached; undefined where it may be. */
export function obstacleOf(
  request: GatewayRequest,
  { hostedTools, maxTemperature }: Pick<CacheOptions, 'hostedTools' | 'maxTemperature'>,
): Obstacle | undefined {
  if (!isChat(request)) return undefined;
  const { settings, tools } = request;
  if (hasMember(request, references)) return 'state';
  if (!hostedTools && (tools.some(isHosted) || hasMember(request, lookups))) return 'hosted-tool';
  if ((settings.choices ?? 1) > 1) return 'choices';
  if (settings.modalities?.some((modality) => modality !== 'text') === true) return 'media';
  if (maxTemperature !== undefined && (settings.temperature ?? Infinity) > maxTemperature)
    return 'temperature';
  for (const { content } of [...request.system, ...request.messages])
    for (const block of content) {
      const obstacle = obstacleIn(block);
      if (obstacle !== undefined) return obstacle;
    }
  return undefined;
}

/** Returns true for a tool that the provider runs or may run. */
function isHosted({ type }: ChatRequest['tools'][number]): boolean {
  return type !== 'function' && type !== 'custom';
}

function obstacleIn(block: Block): Obstacle | undefined {
  if (block.type === 'opaque') return block.spare === true ? undefined : 'state';
  if (block.type === 'tool-result') {
    for (const one of block.content) {
      const obstacle = obstacleIn(one);
      if (obstacle !== undefined) return obstacle;
    }
    return undefined;
  }
  return 'source' in block && block.source.kind === 'file' ? 'file' : undefined;
}

/** Returns true when a request has one of these members at its top, with a value that switches it on. */
function hasMember({ extra }: ChatRequest, names: ReadonlySet<string>): boolean {
  for (const fields of Object.values(extra ?? {})) {
    for (const [name, value] of Object.entries(fields)) {
      if (name === '$kept' && typeof value === 'object' && value !== null) {
        if (Object.entries(value).some(([one, option]) => names.has(one) && asks(one, option))) return true;
      } else if (names.has(name) && asks(name, value)) return true;
    }
  }
  return false;
}

function asks(name: string, value: unknown): boolean {
  if (value === undefined || value === null) return false;
  // For `generate`, `false` is the value that differs from the default.
  return name === 'generate' ? value === false : value !== false;
}
