import type { JsonObject } from '../model/json.ts';
import type { KnownTraits } from '../sdk/channel.ts';

/** Efforts in order, with the member of LiteLLM's list that states each. Models that state any of them take `medium` and `high`. */
const effortFlags = [
  ['none', 'supports_none_reasoning_effort'],
  ['minimal', 'supports_minimal_reasoning_effort'],
  ['low', 'supports_low_reasoning_effort'],
  ['medium', undefined],
  ['high', undefined],
  ['xhigh', 'supports_xhigh_reasoning_effort'],
  ['max', 'supports_max_reasoning_effort'],
] as const;

/** Reads the traits that an entry of LiteLLM's list states for its model. Undefined when it states none. */
export function readKnownTraits(entry: JsonObject): KnownTraits | undefined {
  const efforts = effortsOf(entry);
  const traits: KnownTraits = {
    ...(isOnlyInResponses(entry) ? { formats: ['responses'] } : {}),
    ...(efforts === undefined ? {} : { efforts }),
    ...(entry['thinking_always_on'] === true || entry['thinking_on_by_default'] === true
      ? { thinksByDefault: true }
      : {}),
    ...(entry['thinking_always_on'] === true ? { stopsThinking: false } : {}),
    ...(entry['supports_forced_tool_use'] === false ? { forcedTools: 'never' } : {}),
    ...(typeof entry['supports_mid_conversation_system'] === 'boolean'
      ? { midSystem: entry['supports_mid_conversation_system'] }
      : {}),
    ...(entry['supports_prompt_cache_breakpoint'] === true ? { cacheMark: 'prompt_cache_breakpoint' } : {}),
    ...(entry['supports_sampling_params'] === false ? { refuses: ['temperature', 'topP', 'topK'] } : {}),
  };
  return Object.keys(traits).length === 0 ? undefined : traits;
}

/** Returns undefined where the entry does not tell all of them. */
function effortsOf(entry: JsonObject): readonly string[] | undefined {
  if (entry['supports_reasoning'] !== true) return undefined;
  const listed = entry['reasoning_effort_levels'];
  if (Array.isArray(listed) && listed.length > 0) return listed.map(String);
  const states = (name: string): boolean => typeof entry[name] === 'boolean';
  if (!effortFlags.some(([, name]) => name !== undefined && states(name))) return undefined;
  // The reasoning of such models is disabled by another member than the effort, which the list does not have.
  const isAdaptive = entry['supports_adaptive_thinking'] === true && entry['thinking_always_on'] !== true;
  return effortFlags
    .filter(([effort, name]) => {
      if (name === undefined) return true;
      if (effort === 'none' && isAdaptive) return true;
      return effort === 'low' ? entry[name] !== false : entry[name] === true;
    })
    .map(([effort]) => effort);
}

function isOnlyInResponses({ supported_endpoints: endpoints }: JsonObject): boolean {
  return (
    Array.isArray(endpoints) &&
    endpoints.includes('/v1/responses') &&
    !endpoints.includes('/v1/chat/completions')
  );
}
