import type { JsonObject } from '../../model/json.ts';

/** What a tool that takes free text becomes where the provider has functions only. */
export const freeTextSchema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
};
