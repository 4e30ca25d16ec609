import * as fc from 'fast-check';
import { parse as parseToml } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import type { Syntax } from '../../../../core/cli/connect/documents/document.ts';
import { env } from '../../../../core/cli/connect/documents/env.ts';
import { json } from '../../../../core/cli/connect/documents/json.ts';
import { toml } from '../../../../core/cli/connect/documents/toml.ts';
import { yaml } from '../../../../core/cli/connect/documents/yaml.ts';

const seed = 20_261_126;
const name = fc.stringMatching(/^[a-z][a-z_]{0,8}$/);
const text = fc.stringMatching(/^[ -~]{0,20}$/);

describe('JSON with comments', () => {
  const before = `{
    // my theme
    "theme": "dark", /* yes */
    "models": [
        { "id": "a" }, // the first
    ],
}
`;

  test('keeps comments, order, indentation and trailing commas', () => {
    const after = json.apply(before, [
      { path: ['env', 'URL'], value: 'x' },
      { path: ['models'], by: 'id', value: { id: 'b' } },
      { path: ['models'], by: 'id', value: { id: 'a', name: 'A' } },
    ]);
    expect(after).toContain('// my theme');
    expect(after).toContain('/* yes */');
    expect(after).toContain('// the first');
    expect(after).toContain('\n    "env": {\n        "URL": "x"');
    expect(json.read(after, ['models'])).toEqual([{ id: 'a', name: 'A' }, { id: 'b' }]);
  });

  test.each([
    '{"models":[{"id":"a"},{"id":"b"},{"id":"c"}]}',
    '{ "models": [ {"id":"a"} , {"id":"b"}, /* the third, */ {"id":"c"}, ] }',
    '{\n\t"models": [\n\t\t{ "id": "a" }, // first\n\t\t{ "id": "b" },\n\t\t// third\n\t\t{ "id": "c" }\n\t]\n}\n',
  ])('loses the item of a list that is named, and nothing else: %j', (written) => {
    for (const gone of [['a'], ['b'], ['c'], ['c', 'b'], ['a', 'b'], ['a', 'b', 'c'], ['b', 'b'], ['x']]) {
      const edits = gone.map((item) => ({ path: ['models'], by: 'id', item }));
      const after = json.apply(written, edits);
      const left = ['a', 'b', 'c'].filter((id) => !gone.includes(id));
      expect(json.read(after, ['models'])).toEqual(left.map((id) => ({ id })));
      for (const comment of ['// first', '// third', '/* the third, */'])
        expect(after.includes(comment)).toBe(written.includes(comment));
    }
    for (const other of ['{"models": {"id": 1}}', '{}'])
      expect(json.apply(other, [{ path: ['models'], by: 'id', item: 'a' }])).toBe(`${other}\n`);
  });

  test('says in which line a file is broken', () => {
    expect(() => json.apply('{\n "a": 1\n "b"', [])).toThrow(/not valid JSON.* line 3/);
  });
});

describe('TOML', () => {
  const before = `# mine
model = "old" # why
notify = ["a", "b"]

# the other provider
[model_providers.other]
name = "Other"

[model_providers.sluice]
base_url = "old"
query_params = { a = "b" }

# servers
[mcp_servers.x]
command = "npx"
`;
  const edits = [
    { path: ['model'], value: 'demo' },
    { path: ['model_provider'], value: 'sluice' },
    { path: ['model_providers', 'sluice'], value: { base_url: 'new' } },
  ];

  test('keeps comments, order and other tables', () => {
    const after = toml.apply(before, edits);
    expect(after).toBe(`# mine
model = "demo"
notify = ["a", "b"]
model_provider = "sluice"

# the other provider
[model_providers.other]
name = "Other"

[model_providers.sluice]
base_url = "new"

# servers
[mcp_servers.x]
command = "npx"
`);
    expect(toml.apply(after, edits)).toBe(after);
  });

  test('refuses to edit what it would break', () => {
    expect(() => toml.apply('model_providers = { sluice = { a = 1 } }\n', edits)).toThrow(/cannot be edited/);
    expect(() => toml.apply('text = """\nmodel = "old"\n"""\n', edits)).toThrow(/cannot be edited/);
    expect(() => toml.apply('model = \n', edits)).toThrow(/not valid TOML/);
  });

  test('never changes another member, whatever stands there', () => {
    const table = fc.dictionary(name, text, { maxKeys: 4 });
    fc.assert(
      fc.property(table, table, fc.array(text, { maxLength: 3 }), (top, other, comments) => {
        const lines = [
          ...comments.map((comment) => `# ${comment}`),
          ...Object.entries(top).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
          '[z-z.other] # a table',
          ...Object.entries(other).map(([key, value]) => `  ${key} = ${JSON.stringify(value)}`),
        ];
        const after = toml.apply(lines.join('\n'), [
          { path: ['model'], value: 'demo' },
          { path: ['z-z', 'sluice'], value: { a: 'b' } },
        ]);
        expect(parseToml(after)).toEqual({ ...top, model: 'demo', 'z-z': { other, sluice: { a: 'b' } } });
      }),
      { seed, numRuns: 100 },
    );
  });
});

describe('YAML', () => {
  test('keeps comments and order, and replaces the item of a list that has the same name', () => {
    const before = `# mine
name: Local # here
models:
  # the first
  - name: a
    model: x
`;
    const after = yaml.apply(before, [
      { path: ['models'], by: 'name', value: { name: 'Sluice', model: 'demo' } },
      { path: ['weak-model'], value: 'w' },
    ]);
    expect(after).toBe(`# mine
name: Local # here
models:
  # the first
  - name: a
    model: x
  - name: Sluice
    model: demo
weak-model: w
`);
    const again = yaml.apply(after, [
      { path: ['models'], by: 'name', value: { name: 'Sluice', model: 'other' } },
    ]);
    expect(yaml.read(again, ['models'])).toEqual([
      { name: 'a', model: 'x' },
      { name: 'Sluice', model: 'other' },
    ]);
  });

  test('can be a list as a whole', () => {
    const edit = { path: [], by: 'id', value: { id: 'a' } };
    const after = yaml.apply('', [edit]);
    expect(yaml.read(yaml.apply(after, [edit]), [])).toEqual([{ id: 'a' }]);
    expect(yaml.read(yaml.apply(after, [{ path: [], by: 'id', item: 'a' }]), [])).toEqual([]);
  });
});

describe('.env files', () => {
  test('keep comments and other variables', () => {
    const after = env.apply('# mine\nA=1\nexport KEY=old\n', [
      { path: ['KEY'], value: 'new' },
      { path: ['URL'], value: 'http://x:1/a' },
      { path: ['TITLE'], value: 'two words' },
    ]);
    expect(after).toBe("# mine\nA=1\nKEY=new\nURL=http://x:1/a\nTITLE='two words'\n");
    expect(env.read(after, ['TITLE'])).toBe('two words');
  });
});

describe.each<[string, Syntax]>([
  ['JSON', json],
  ['TOML', toml],
  ['YAML', yaml],
  ['.env', env],
])('%s', (_title, syntax) => {
  const value = syntax === env ? fc.stringMatching(/^[\w ./:-]{0,20}$/) : text;

  test('gives back what was written, stays the same the second time, and loses it again', () => {
    fc.assert(
      fc.property(
        fc.dictionary(name, value, { minKeys: 1, maxKeys: 4 }),
        name,
        value,
        (others, own, wanted) => {
          const first = syntax.apply(
            '',
            Object.entries(others).map(([key, one]) => ({ path: [key], value: one })),
          );
          const edits = [{ path: [own], value: wanted }];
          const after = syntax.apply(first, edits);
          expect(syntax.read(after, [own])).toBe(wanted);
          expect(syntax.apply(after, edits)).toBe(after);
          const gone = syntax.apply(after, [{ path: [own] }]);
          expect(syntax.read(gone, [own])).toBeUndefined();
          for (const [key, one] of Object.entries(others))
            if (key !== own) expect(syntax.read(gone, [key])).toBe(one);
        },
      ),
      { seed, numRuns: 100 },
    );
  });
});
