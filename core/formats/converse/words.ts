/** Neutral names of what may be lost, as this format spells them. */
export const words: Readonly<Record<string, string>> = {
  // A budget is another spelling of an effort: what is lost of either is lost here.
  'settings.reasoning.effort': 'additionalModelRequestFields.thinking',
  'settings.reasoning.budget': 'additionalModelRequestFields.thinking.budget_tokens',
  'settings.reasoning.mode': 'additionalModelRequestFields.thinking.type',
  'settings.reasoning.show': 'additionalModelRequestFields.thinking.display',
  'settings.reasoning.display': 'additionalModelRequestFields.thinking.display',
  'settings.responseFormat.schema': 'outputConfig.textFormat.structure.jsonSchema.schema',
  'settings.responseFormat.name': 'outputConfig.textFormat.structure.jsonSchema.name',
  'settings.responseFormat.description': 'outputConfig.textFormat.structure.jsonSchema.description',
  tool_choice: 'toolConfig.toolChoice',
  cache: 'cachePoint',
  'cache.ttl': 'cachePoint.ttl',
  failed: 'status',
  proof: 'signature',
  schema: 'inputSchema',
};
