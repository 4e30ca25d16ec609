import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { JsonObject } from '../../core/model/json.ts';

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** The published structure of response objects and stream events; the file says where it is from. */
const published = JSON.parse(
  readFileSync(new URL('open-responses.json', import.meta.url), 'utf8'),
) as JsonSchema & { readonly $defs: Readonly<Record<string, JsonSchema>> };

const definition = (name: string): z.ZodType =>
  z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs: published.$defs } as JsonSchema);

const responseObject = definition('ResponseResource');

/** The schema of each event of a stream, by its type. */
const events: ReadonlyMap<string, z.ZodType> = new Map(
  Object.keys(published.$defs)
    .filter((name) => name.endsWith('StreamingEvent'))
    .map((name) => [typeOf(name), definition(name)]),
);

function typeOf(event: string): string {
  const { properties } = published.$defs[event] as { properties: { type: { $ref: string } } };
  const { enum: names } = published.$defs[properties.type.$ref.replace('#/$defs/', '')] as {
    enum: readonly string[];
  };
  const [only] = names;
  if (only === undefined) throw new Error(`${event} has no type.`);
  return only;
}

/** Returns the violations of the Open Responses schema by a response object; empty if there are none. */
export function responseProblems(response: unknown): string[] {
  return problems(responseObject, response);
}

/** Returns the violations of the Open Responses schema by an event of a stream. */
export function eventProblems(event: JsonObject): string[] {
  const schema = events.get(String(event.type));
  if (schema === undefined) return [`${String(event.type)}: the schema does not know this event`];
  return problems(schema, event).map((problem) => `${String(event.type)}: ${problem}`);
}

function problems(schema: z.ZodType, value: unknown): string[] {
  const { error } = schema.safeParse(value);
  return (error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${deepest(issue)}`);
}

/** The complaint of the alternative that fits best, which is the one that got furthest into the value. */
function deepest(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_union') return issue.message;
  const all = issue.errors.flat().toSorted((a, b) => b.path.length - a.path.length);
  const [best] = all;
  return best === undefined ? issue.message : `${best.path.join('.')}: ${deepest(best)}`;
}
