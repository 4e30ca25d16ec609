import { responseFormatReader, schemaFields } from '../_openai/response-format.ts';

/** Fields of `text.format` that the neutral model has words for. */
export const formatFields: ReadonlySet<string> = new Set(['type', ...schemaFields]);

/** `text.format` in neutral words. Throws 400 with the path. */
export const readResponseFormat = responseFormatReader();
