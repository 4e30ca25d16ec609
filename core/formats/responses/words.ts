/** Neutral names of what may be lost, as this format spells them. */
export const words: Readonly<Record<string, string>> = {
  'settings.reasoning.budget': 'reasoning.effort',
  'settings.reasoning.mode': 'reasoning.effort',
  'settings.reasoning.show': 'reasoning.summary',
  'settings.reasoning.display': 'reasoning.summary',
  'settings.responseFormat.type': 'text.format.type',
  'settings.responseFormat.name': 'text.format.name',
  'settings.responseFormat.description': 'text.format.description',
  'settings.responseFormat.schema': 'text.format.schema',
  'settings.responseFormat.strict': 'text.format.strict',
  cache: 'prompt_cache_breakpoint',
  'cache.ttl': 'prompt_cache_breakpoint',
  proof: 'encrypted_content',
  schema: 'parameters',
  name: 'filename',
};
