import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { commonOptions } from '../../core/config/channel-options.ts';
import { maskSecrets } from '../../core/log.ts';
import { settingsSchema } from '../../core/settings/index.ts';
import { hideSecretsIn, secretKind } from '../../core/settings/secret.ts';

const home = fileURLToPath(new URL('../..', import.meta.url));

/** One text that an operator can set, with the names of the members that lead to it. `isMarked`: it or what it is part of is a secret. */
interface Option {
  readonly path: string;
  readonly isMarked: boolean;
  readonly isUrl: boolean;
}

/** Returns every text of a schema. */
function optionsOf(schema: z.ZodType, path: string, marked = false): Option[] {
  const isMarked = marked || secretKind(schema) !== undefined;
  const inner = (one: unknown, at = path): Option[] => optionsOf(one as z.ZodType, at, isMarked);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => inner(option));
  if (schema instanceof z.ZodPipe) return inner(schema.in);
  if ('innerType' in schema.def) return inner(schema.def.innerType);
  if (schema instanceof z.ZodArray) return inner(schema.element, `${path}[]`);
  if (schema instanceof z.ZodRecord) return inner(schema.valueType, `${path}{}`);
  if (schema instanceof z.ZodObject)
    return Object.entries(schema.shape).flatMap(([name, member]) => inner(member, `${path}.${name}`));
  const isText =
    schema instanceof z.ZodString || schema instanceof z.ZodStringFormat || schema instanceof z.ZodUnknown;
  return isText ? [{ path, isMarked, isUrl: schema instanceof z.ZodURL }] : [];
}

interface Definition {
  readonly default?: { readonly spec?: { readonly name: string; readonly options?: z.ZodType } };
}

/** The schemas of all channel kinds and plugins of a folder, by their names. */
async function schemasIn(folder: string): Promise<readonly (readonly [string, z.ZodType])[]> {
  const files = globSync([`${folder}/*.ts`, `${folder}/*/index.ts`], { cwd: home })
    .filter((file) => !/\/_/.test(file))
    .toSorted();
  const found: [string, z.ZodType][] = [];
  for (const file of files) {
    const { default: definition } = (await import(join(home, file))) as Definition;
    if (definition?.spec?.options !== undefined)
      found.push([`${folder}/${definition.spec.name}`, definition.spec.options]);
  }
  return found;
}

const schemas: readonly (readonly [string, z.ZodType])[] = [
  ['settings', settingsSchema],
  ['channels/*', commonOptions],
  ...(await schemasIn('channels')),
  ...(await schemasIn('plugins')),
];
const options = schemas.flatMap(([name, schema]) => optionsOf(schema, name));

/** Options whose names sound like secrets and that hold none. */
const harmless: Readonly<Record<string, string>> = {
  'channels/azure-openai.identity.tokenFile': 'a path',
  'channels/azure-foundry.identity.tokenFile': 'a path',
  'channels/oci.identity.tokenFile': 'a path',
  'channels/*.headers.set{}': 'masked by the names of the headers',
  'plugins/guard.checks[].keys[]': 'names of keys of callers',
  'plugins/mcp.servers{}.keys[]': 'names of keys of callers',
  'plugins/mcp.access[].keys[]': 'names of keys of callers',
  'plugins/mcp.servers{}.oauth.issuer': 'published by the authorization server',
  'plugins/admin.signIn.publicUrl': 'told to browsers',
  'plugins/admin.signIn.providers[].issuer': 'a public identifier',
  'plugins/mcp.origins[]': 'sent by browsers',
  'plugins/video-tasks.publicUrl': 'told to clients',
  'plugins/provider-objects.publicUrl': 'told to clients',
  'plugins/mcp-tools.servers{}.keys[]': 'names of keys of callers',
  'plugins/mcp-tools.offer[].keys[]': 'names of keys of callers',
  'plugins/mcp-tools.servers{}.oauth.issuer': 'a public identifier',
  'plugins/secrets-aws.credentials.accessKeyId': 'a public identifier',
  'plugins/secrets-vault.auth.tokenFile': 'a path',
  'settings.runtimeConfig.secrets[]': 'references',
};

const soundsSecret =
  /(?:^|[.\]}])(?:keys?|\w*(?:secret|token|password|passphrase|credential|private|apikey|servicekey|database|webhook)\w*)(?:[.[{]|$)/i;

describe('options that may hold a secret', () => {
  test('are found by this test at all', () => {
    expect(options.length).toBeGreaterThan(80);
    expect(options.filter(({ isMarked }) => isMarked).map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        'settings.database',
        'settings.adminPassword',
        'channels/*.key',
        'channels/*.keys[]',
        'channels/azure-openai.identity.secret',
        'channels/vertex.credentials',
        'channels/sap-ai-core.serviceKey',
      ]),
    );
  });

  test('are marked as such in their schemas', () => {
    const unmarked = options
      .filter(({ path, isMarked, isUrl }) => !isMarked && (isUrl || soundsSecret.test(path)))
      .map(({ path }) => path)
      .filter((path) => !Object.hasOwn(harmless, path));
    // Wrap the option in secret(…) or secretUrl(…), or say in `harmless` why it holds no secret.
    expect(unmarked).toEqual([]);
  });

  test('no exception has lost its reason', () => {
    const needed = options.filter(({ path, isMarked }) => !isMarked && Object.hasOwn(harmless, path));
    const paths = [...new Set(needed.map(({ path }) => path))];
    expect(paths.toSorted()).toEqual(Object.keys(harmless).toSorted());
  });
});

/** A value for an option, in the shape that its path asks for. */
function valueAt(path: string, secret: string): unknown {
  const [, ...steps] = path.split(/(?=[.[{])/);
  return steps.reduceRight<unknown>((value, step) => {
    if (step === '[]') return [value];
    if (step === '{}') return { entry: value };
    return { [step.slice(1)]: value };
  }, secret);
}

/** A service key is marked as a whole; its client id and its addresses are no secrets. */
const openMembers = /\.serviceKey\.(?:clientid|url|serviceurls)/;

const marked = options.filter(
  ({ path, isMarked }) => isMarked && !path.endsWith('{}') && !openMembers.test(path),
);

test.each(marked.map(({ path }, index) => [path, index] as const))(
  '%s is masked as it is, in JSON, and in JSON within JSON',
  (path, index) => {
    const [, schema] = schemas.find(([name]) => path.startsWith(`${name}.`)) ?? [];
    if (schema === undefined) throw new Error(`There is no schema for ${path}.`);
    const canary = `canary "${index}" of\na few words`;
    const isAddress = /url|database/i.test(path) || /\.(?:proxy|baseUrl|endpoint)$/.test(path);
    const secret = isAddress ? `https://user:${encodeURIComponent(canary)}@host.example/` : canary;
    hideSecretsIn(schema, valueAt(path, secret));
    for (const text of [
      `a ${secret} b`,
      JSON.stringify({ secret }),
      JSON.stringify({ text: JSON.stringify({ secret }) }),
    ])
      expect(maskSecrets(text)).not.toContain(isAddress ? encodeURIComponent(canary) : `canary \\"${index}`);
    expect(maskSecrets(`a ${secret} b`)).not.toContain(isAddress ? encodeURIComponent(canary) : canary);
  },
);
