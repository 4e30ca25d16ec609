/** Neutral names of what may be lost, as chat completions spells them. */
export const words: Readonly<Record<string, string>> = {
  'settings.reasoning.effort': 'reasoning_effort',
  'settings.reasoning.budget': 'reasoning_effort',
  'settings.reasoning.mode': 'reasoning_effort',
  'settings.reasoning.show': 'reasoning.exclude',
  'settings.responseFormat': 'response_format',
  'settings.responseFormat.type': 'response_format.type',
  'settings.responseFormat.name': 'response_format.json_schema.name',
  'settings.responseFormat.description': 'response_format.json_schema.description',
  'settings.responseFormat.schema': 'response_format.json_schema.schema',
  'settings.responseFormat.strict': 'response_format.json_schema.strict',
  cache: 'prompt_cache_breakpoint',
  'cache.ttl': 'prompt_cache_breakpoint',
  detail: 'image_url.detail',
  strict: 'function.strict',
  schema: 'function.parameters',
  format: 'custom.format',
};
