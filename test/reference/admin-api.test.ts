import { expect, test } from 'vitest';
import { openapiDocument } from '../../plugins/admin/openapi.ts';
import { generatedBy, pageOf, sentence } from './_page.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly 'x-scope'?: string;
  readonly parameters: readonly {
    readonly name?: string;
    readonly in?: string;
    readonly required?: boolean;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<
        string,
        {
          readonly schema: {
            readonly properties?: Readonly<Record<string, unknown>>;
            readonly required?: readonly string[];
          };
        }
      >
    >;
  };
}

const { paths } = openapiDocument() as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

test('the reference has every route of the admin API', async () => {
  const groups = new Map<string, string[]>();
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations)) {
      const [, , , group = ''] = path.split('/');
      groups.set(group, [...(groups.get(group) ?? []), lineOf(method, path, operation)]);
    }
  const page = pageOf(
    '# Admin API',
    generatedBy(
      'test/reference/admin-api.test.ts',
      'the OpenAPI document that `GET /api/admin/openapi.json` returns',
    ),
    'The document has the shapes of all requests and responses. A route asks for the scope in brackets. [Use the admin API from scripts](../guides/admin-api.md) says how to authenticate, and [Access to the admin API](admin-access.md) what each role may do.',
    ...[...groups].map(([name, lines]) => [`## ${name}`, lines.join('\n')].join('\n\n')),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/admin-api.md');
});

function lineOf(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters, requestBody, 'x-scope': scope } = operation;
  const query = parameters
    .filter((one) => one.in === 'query')
    .map(({ name = '', required }) => shownMember(name, required === true));
  const { properties = {}, required = [] } = requestBody?.content['application/json']?.schema ?? {};
  const body = Object.keys(properties).map((name) => shownMember(name, required.includes(name)));
  return [
    `- \`${method.toUpperCase()} ${path}\` ${scope === undefined ? '(open)' : `(\`${scope}\`)`}: ${sentence(summary)}`,
    ...(description === undefined ? [] : [sentence(description)]),
    ...(query.length === 0 ? [] : [`Query: ${query.join(', ')}.`]),
    ...(body.length === 0 ? [] : [`Body: ${body.join(', ')}.`]),
  ].join(' ');
}

function shownMember(name: string, isRequired: boolean): string {
  return isRequired ? `\`${name}\` (required)` : `\`${name}\``;
}
