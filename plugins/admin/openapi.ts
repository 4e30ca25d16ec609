import { z } from 'zod';
import { routes, type RouteSpec } from './routes.ts';
import { failure } from './schemas/index.ts';

/** Returns the OpenAPI 3.1 document of the admin API, made from the schemas that check its requests. */
export function openapiDocument(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, spec] of Object.entries<RouteSpec>(routes)) {
    const path = spec.path.replaceAll(/:(\w+)/g, '{$1}');
    const operations = (paths[path] ??= {});
    operations[spec.method.toLowerCase()] = operationOf(name, spec);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice admin API',
      version: '1',
      description:
        'Times are in milliseconds since 1970, durations in milliseconds, money in whole micro-dollars. Every response other than 2xx is a Failure.',
    },
    paths,
    components: {
      schemas: { Failure: schemaOf(failure) },
      responses: {
        Failure: {
          description: 'Refused, or failed',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
        },
      },
      parameters: {
        IdempotencyKey: {
          name: 'idempotency-key',
          in: 'header',
          required: false,
          description:
            'Prevents repeated requests from creating several objects. The same key and body within 24 hours get the same response, with the header idempotent-replayed. A different body gets 422; a request whose outcome is unknown gets 409.',
          schema: { type: 'string', minLength: 1, maxLength: 255 },
        },
        IfMatch: {
          name: 'if-match',
          in: 'header',
          required: false,
          description:
            'Version of the object that is changed, from `version` or the header etag of an earlier response. 412 if the object was changed since. Without this header, the last writer wins.',
          schema: { type: 'string' },
        },
      },
      headers: {
        Version: { description: 'Version of the object, in quotes.', schema: { type: 'string' } },
      },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token of the admin API, which begins with sla_. It counts before a cookie.',
        },
        session: { type: 'apiKey', in: 'cookie', name: 'sluice-session' },
        csrf: { type: 'apiKey', in: 'header', name: 'x-csrf-token' },
      },
    },
  };
}

function operationOf(name: string, spec: RouteSpec): object {
  const {
    method,
    path,
    summary,
    description,
    needs,
    body,
    answer,
    type = 'application/json',
    status = 200,
  } = spec;
  const isOpen = needs.who === 'open';
  return {
    operationId: name,
    summary,
    ...(description === undefined ? {} : { description }),
    security: isOpen ? [] : [{ token: [] }, method === 'GET' ? { session: [] } : { session: [], csrf: [] }],
    ...(isOpen ? {} : { 'x-scope': `${needs.group}:${needs.act}` }),
    parameters: [
      ...[...path.matchAll(/:(\w+)/g)].map(([, parameter]) => ({
        name: parameter,
        in: 'path',
        required: true,
        schema: { type: 'string' },
      })),
      ...queryParameters(spec),
      ...(spec.creates === true ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
      ...(spec.versioned === 'change' ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { content: { 'application/json': { schema: schemaOf(body) } } } }),
    responses: {
      [status]: {
        description: 'Done',
        ...(spec.versioned === undefined
          ? {}
          : { headers: { etag: { $ref: '#/components/headers/Version' } } }),
        content: { [type]: { schema: type === 'text/csv' ? { type: 'string' } : schemaOf(answer) } },
      },
      ...Object.fromEntries(
        refusalsOf(spec).map((one) => [one, { $ref: '#/components/responses/Failure' }] as const),
      ),
      default: { $ref: '#/components/responses/Failure' },
    },
  };
}

/** Statuses with which a route refuses requests. */
function refusalsOf({ needs, path, creates, versioned }: RouteSpec): readonly number[] {
  return [
    400,
    ...(needs.who === 'open' ? [] : [401, 403]),
    ...(path.includes(':') ? [404] : []),
    ...(creates === true ? [409] : []),
    ...(versioned === 'change' ? [412] : []),
    ...(creates === true ? [422] : []),
    429,
  ];
}

function queryParameters({ query }: RouteSpec): object[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }));
}

/** Returns the JSON Schema of the input form, in which members with a default are optional. */
function schemaOf(schema: z.ZodType) {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}
