/** Operations of the admin API as the OpenAPI document of a gateway describes them. */
import { z } from 'zod';
import type { JsonObject } from '../../model/json.ts';
import type { ServiceRequest } from '../../sdk/author/services.ts';
import { CommandFailure } from './failure.ts';

/** JSON Schema of one field. */
export type FieldSchema = JsonObject;

/** One field of a body or a query. */
export interface Field {
  readonly name: string;
  readonly in: 'body' | 'query';
  readonly schema: FieldSchema;
  readonly isRequired: boolean;
}

/** One operation. */
export interface Operation {
  readonly name: string;
  readonly method: NonNullable<ServiceRequest['method']>;
  /** Path with `{id}` in place of an id. */
  readonly path: string;
  readonly fields: readonly Field[];
  readonly hasBody: boolean;
  /** True when the operation creates something and accepts an idempotency key. */
  readonly creates: boolean;
  /** True when the response is CSV of any length. */
  readonly isCsv: boolean;
  /** True when the operation accepts `if-match` with the version to change. */
  readonly takesVersion: boolean;
}

const json = z.record(z.string(), z.json());
const objectSchema = z.object({
  properties: z.record(z.string(), json).default({}),
  required: z.array(z.string()).default([]),
});
const operationSchema = z.object({
  operationId: z.string(),
  parameters: z
    .array(
      z.union([
        z.object({ $ref: z.string() }),
        z.object({ name: z.string(), in: z.string(), required: z.boolean().optional(), schema: json }),
      ]),
    )
    .default([]),
  responses: z
    .record(z.string(), z.object({ content: z.record(z.string(), z.unknown()).optional() }))
    .default({}),
  requestBody: z
    .object({ content: z.object({ 'application/json': z.object({ schema: objectSchema }) }) })
    .optional(),
});
const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
});

/** The operations of a gateway. */
export type Operations = ReadonlyMap<string, Operation>;

/** Reads the OpenAPI document of a gateway. */
export function readOperations(document: unknown): Operations {
  const { data } = documentSchema.safeParse(document);
  if (data === undefined)
    throw new CommandFailure(
      'The OpenAPI document of the gateway is invalid. The gateway may run another version of Sluice: use the same version for both.',
    );
  const found = Object.entries(data.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, spec]) => operationOf(path, method, spec)),
  );
  return new Map(found.map((operation) => [operation.name, operation]));
}

function operationOf(path: string, method: string, spec: z.output<typeof operationSchema>): Operation {
  const body = spec.requestBody?.content['application/json'].schema;
  const references = spec.parameters.flatMap((one) => ('$ref' in one ? [one.$ref] : []));
  const query = spec.parameters.flatMap((one): Field[] =>
    '$ref' in one || one.in !== 'query'
      ? []
      : [{ name: one.name, in: 'query', schema: one.schema, isRequired: one.required === true }],
  );
  return {
    name: spec.operationId,
    method: method.toUpperCase() as Operation['method'],
    path: path.replace('/api/admin', ''),
    fields: [...query, ...(body === undefined ? [] : bodyFields(body))],
    hasBody: body !== undefined,
    creates: references.some((one) => one.endsWith('/IdempotencyKey')),
    isCsv: Object.values(spec.responses).some(({ content }) => content?.['text/csv'] !== undefined),
    takesVersion: references.some((one) => one.endsWith('/IfMatch')),
  };
}

/** Returns the fields of a body. */
export function bodyFields(schema: unknown): readonly Field[] {
  const { properties, required } = objectSchema.parse(schema);
  return Object.entries(properties).map(([name, field]) => ({
    name,
    in: 'body',
    schema: field,
    isRequired: required.includes(name),
  }));
}
