import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { openapiDocument } from '../../../plugins/admin/openapi.ts';
import { routes, type RouteSpec } from '../../../plugins/admin/routes.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Record<string, unknown> }> };
  readonly security: readonly object[];
}

const document = openapiDocument() as {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
};

test('the document has every route, by its own name', () => {
  const named = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(named.toSorted()).toEqual(Object.keys(routes).toSorted());
  expect(document.openapi).toBe('3.1.0');
});

test('parameters of a path and of a query are told apart', () => {
  expect(document.paths['/api/admin/keys/{id}']?.['patch']?.parameters).toMatchObject([
    { name: 'id', in: 'path', required: true },
    { $ref: '#/components/parameters/IfMatch' },
  ]);
  const sums = document.paths['/api/admin/usage/sums']?.['get']?.parameters;
  expect(sums?.find(({ name }) => name === 'by')).toMatchObject({ in: 'query', required: true });
  expect(sums?.find(({ name }) => name === 'since')).toMatchObject({ in: 'query', required: false });
});

test('what a new key must have is the same as what is checked', () => {
  const schema =
    document.paths['/api/admin/keys']?.['post']?.requestBody?.content['application/json']?.schema;
  expect(schema).toMatchObject({ required: ['name'], additionalProperties: false });
});

test('only what comes before a sign-in is open', () => {
  const open = Object.entries<RouteSpec>(routes).filter(([, spec]) => spec.needs.who === 'open');
  expect(open.map(([name]) => name)).toEqual(['login', 'signInWays', 'signIn', 'acceptInvitation']);
  expect(document.paths['/api/admin/login']?.['post']?.security).toEqual([]);
  expect(document.paths['/api/admin/keys']?.['get']?.security).toEqual([{ token: [] }, { session: [] }]);
  expect(document.paths['/api/admin/keys']?.['post']?.security).toEqual([
    { token: [] },
    { session: [], csrf: [] },
  ]);
});

test('every reference leads somewhere', () => {
  const text = JSON.stringify(document);
  for (const [, path = ''] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const found = path
      .split('/')
      .reduce<unknown>((inner, step) => (inner as Record<string, unknown> | undefined)?.[step], document);
    expect({ path, found }).toEqual({ path, found: expect.anything() });
  }
});

test('it is valid OpenAPI 3.1', async () => {
  const validator = new Validator();
  // As it is sent: the validator changes what it is given.
  expect(
    await validator.validate(structuredClone(document) as unknown as Record<string, unknown>),
  ).toMatchObject({ valid: true });
  expect(validator.version).toBe('3.1');
});

test('routes that create something take an idempotency-key, and say what it is refused with', () => {
  const creating = Object.entries<RouteSpec>(routes).filter(([, { creates }]) => creates === true);
  expect(creating.map(([name]) => name)).toEqual(
    expect.arrayContaining(['createKey', 'createOwner', 'createToken']),
  );
  for (const [, { path, method }] of creating) {
    const operation = document.paths[path]?.[method.toLowerCase()];
    expect(operation?.parameters).toContainEqual({ $ref: '#/components/parameters/IdempotencyKey' });
    expect(operation).toMatchObject({ responses: { 409: expect.anything(), 422: expect.anything() } });
  }
});
