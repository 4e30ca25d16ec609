/** Settings of Messages: the path, type and range of each. */
import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';

/** Every setting that has one field of its own. Reasoning, response format and parallel tools span several and have their own files. */
export const settingRows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'max_tokens', kind: 'integer', min: 0 },
  { name: 'temperature', path: 'temperature', kind: 'number', min: 0, max: 1 },
  { name: 'topP', path: 'top_p', kind: 'number', min: 0, max: 1 },
  { name: 'topK', path: 'top_k', kind: 'integer' },
  { name: 'stop', path: 'stop_sequences', kind: 'strings' },
  { name: 'user', path: 'metadata.user_id', kind: 'string' },
  {
    name: 'serviceTier',
    path: 'service_tier',
    kind: 'string',
    read: (value) => (value === 'auto' ? 'auto' : value === 'standard_only' ? 'default' : undefined),
    write: (value) => (value === 'auto' ? 'auto' : value === 'default' ? 'standard_only' : undefined),
  },
];

/** The client's path of a setting. */
export const settingPath = pathsOf(settingRows, {
  reasoning: 'thinking',
  responseFormat: 'output_config.format',
  parallelTools: 'tool_choice.disable_parallel_tool_use',
});

/** The members in which a setting stands, and the tools. */
export const places = settingPlaces(settingRows, {
  reasoning: ['thinking', 'output_config'],
  responseFormat: ['output_config', 'output_format'],
  parallelTools: ['tool_choice'],
  toolChoice: ['tool_choice'],
  tools: ['tools'],
});
