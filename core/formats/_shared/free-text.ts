import type { JsonObject } from '../../model/json.ts';

/** Schema of the function that replaces a free-text tool, for providers that support only functions. */
export const freeTextSchema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
};
