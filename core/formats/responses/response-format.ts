/** Decodes `text.format` of Responses. */
import { responseFormatReader, schemaFields } from '../_openai/response-format.ts';

/** Fields of `text.format` that the neutral model has words for. */
export const formatFields: ReadonlySet<string> = new Set(['type', ...schemaFields]);

/** Returns the neutral response format. Throws 400 with the path. */
export const readResponseFormat = responseFormatReader();
