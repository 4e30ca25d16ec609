import { z } from 'zod';
import { routes, type RouteSpec } from './routes.ts';
import { failure } from './schemas/index.ts';

/** The OpenAPI 3.1 document of the admin API, made from the schemas that check its requests. */
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
        'Times are in milliseconds since 1970, durations in milliseconds, money in whole micro-dollars. Every answer other than 2xx is a Failure.',
    },
    paths,
    components: {
      schemas: { Failure: schemaOf(failure) },
      securitySchemes: {
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
  return {
    operationId: name,
    summary,
    ...(description === undefined ? {} : { description }),
    security: needs.who === 'open' ? [] : [method === 'GET' ? { session: [] } : { session: [], csrf: [] }],
    parameters: [
      ...[...path.matchAll(/:(\w+)/g)].map(([, parameter]) => ({
        name: parameter,
        in: 'path',
        required: true,
        schema: { type: 'string' },
      })),
      ...queryParameters(spec),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { content: { 'application/json': { schema: schemaOf(body) } } } }),
    responses: {
      [status]: {
        description: 'Done',
        content: { [type]: { schema: type === 'text/csv' ? { type: 'string' } : schemaOf(answer) } },
      },
      default: {
        description: 'Refused, or failed',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
      },
    },
  };
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

/** As it is written: what is filled in by a default may be left out. */
function schemaOf(schema: z.ZodType) {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}
