/** Neutral names of what may be lost, as messages spells them. */
export const words: Readonly<Record<string, string>> = {
  'settings.reasoning.effort': 'output_config.effort',
  'settings.reasoning.budget': 'thinking.budget_tokens',
  'settings.reasoning.mode': 'thinking.type',
  'settings.reasoning.show': 'thinking.display',
  'settings.reasoning.display': 'thinking.display',
  'settings.responseFormat': 'output_config.format',
  'settings.responseFormat.type': 'output_config.format.type',
  'settings.responseFormat.schema': 'output_config.format.schema',
  cache: 'cache_control',
  'cache.ttl': 'cache_control.ttl',
  failed: 'is_error',
  proof: 'signature',
  schema: 'input_schema',
};
