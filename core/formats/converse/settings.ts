/** Settings of Converse: the path, type and range of each. */
import { pathsOf, settingPlaces, type SettingRow } from '../_shared/settings.ts';
import { setOf } from '../_shared/fields.ts';

/** Every setting that has one field of its own. Reasoning and response format span several and have their own files. */
export const settingRows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'inferenceConfig.maxTokens', kind: 'integer', min: 1 },
  { name: 'temperature', path: 'inferenceConfig.temperature', kind: 'number', min: 0, max: 1 },
  { name: 'topP', path: 'inferenceConfig.topP', kind: 'number', min: 0, max: 1 },
  { name: 'stop', path: 'inferenceConfig.stopSequences', kind: 'strings' },
  // The API has no field of its own for it: models take it among their additional fields.
  { name: 'topK', path: 'additionalModelRequestFields.top_k', kind: 'integer' },
  {
    name: 'serviceTier',
    path: 'serviceTier.type',
    kind: 'string',
    write: (value) => (typeof value === 'string' && tiers.has(value) ? value : undefined),
  },
  { name: 'metadata', path: 'requestMetadata', kind: 'object' },
];

const tiers = setOf('priority default flex reserved');

/** Fields of top-level objects that are decoded, as settings or in other files. */
export const knownFields: Readonly<Record<string, ReadonlySet<string>>> = {
  inferenceConfig: setOf('maxTokens temperature topP stopSequences'),
  additionalModelRequestFields: setOf('top_k thinking'),
  serviceTier: setOf('type'),
  outputConfig: setOf('textFormat effort'),
};

/** The client's path of a setting. */
export const settingPath = pathsOf(settingRows, {
  reasoning: 'additionalModelRequestFields.thinking',
  responseFormat: 'outputConfig.textFormat',
});

/** The members in which a setting stands, and the tools. */
export const places = settingPlaces(settingRows, {
  reasoning: ['additionalModelRequestFields', 'outputConfig'],
  responseFormat: ['outputConfig'],
  toolChoice: ['toolConfig'],
  tools: ['toolConfig'],
});
