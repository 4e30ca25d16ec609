/**
 * Asks a model for JSON on behalf of Messages and Converse: by a JSON Schema, an instruction, or a forced tool whose arguments are the
 * answer.
 */
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { adaptSchema } from './json-schema/adapt.ts';

/** The name of the tool whose call is the answer. */
export const answerTool = 'json_output';

const jsonInstruction = 'Answer with one valid JSON object and nothing else: no prose, no code fence.';

/** Functions that request an answer in JSON in a format. */
interface AnswerWords {
  /** Requests it with a schema. */
  readonly schema: (schema: JsonObject) => void;
  /** The members of a schema that it has no place for. */
  readonly lacks: readonly ('name' | 'description' | 'strict')[];
  /** Adds the instruction as a text of its own, so that the client's text stays unchanged. */
  readonly instruct: (text: string) => void;
  /** Requests it with a forced tool, and returns the name of the tool; undefined when other tools prevent that. */
  readonly force: (schema: JsonObject, description: string) => string | undefined;
}

/** Requests structured output: by schema where the model takes one, else by instruction, else by a forced tool. Returns the name of that tool, because its call is then the response. */
export function encodeAnswerForm(
  { settings: { responseFormat: format } }: ChatRequest,
  { traits, drop }: EncodeTarget,
  words: AnswerWords,
): string | undefined {
  // Text is what comes anyway.
  if (format === undefined || format.type === 'text') return undefined;
  const { schema } = format;
  const refused = traits.refuses?.includes('responseFormat') === true;
  if (!refused && format.type !== 'json' && schema !== undefined && traits.jsonSchema !== false) {
    for (const member of words.lacks)
      if (format[member] !== undefined) drop(`settings.responseFormat.${member}`);
    const dropInSchema = (path: string): void => drop(`settings.responseFormat.schema.${path}`);
    words.schema(adaptSchema(schema, traits.schemaSubset, { drop: dropInSchema }));
    return undefined;
  }
  drop('settings.responseFormat');
  if (refused) return undefined;
  if (format.type === 'json' || schema === undefined) {
    words.instruct(jsonInstruction);
    return undefined;
  }
  const description = format.description ?? 'The final answer is given by calling this tool.';
  const isObjects = schema.type === undefined || schema.type === 'object';
  const forced = isObjects ? words.force({ type: 'object', ...schema }, description) : undefined;
  if (forced === undefined)
    words.instruct(`Answer with nothing but JSON of this schema: ${JSON.stringify(schema)}`);
  return forced;
}
