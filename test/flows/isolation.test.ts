import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { routes, type RouteName, type RouteSpec } from '../../plugins/admin/routes.ts';
import { adminPassword, logIn, signIn, type Admin } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const password = 'correct horse battery';

/** Columns of the table: whose thing it is. */
const relations = ['own', 'own team', 'other team', 'other organisation'] as const;
type Relation = (typeof relations)[number];

const actorNames = [
  'admin',
  'auditor',
  'organisation admin',
  'organisation auditor',
  'team lead',
  'member',
] as const;
type ActorName = (typeof actorNames)[number];

let gateway: TestGateway;
let root: Admin;
const actors = new Map<ActorName, { readonly admin: Admin; readonly member: string }>();
const ids = { acme: '', globex: '', red: '', blue: '', green: '', bob: '' };

beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo()] });
  root = await logIn(gateway.url);
  const owner = async (body: object): Promise<string> => (await root.request('createOwner', { body })).id;
  ids.acme = await owner({ kind: 'organisation', name: 'Acme' });
  ids.globex = await owner({ kind: 'organisation', name: 'Globex' });
  ids.red = await owner({ kind: 'team', name: 'red', organisation: ids.acme });
  ids.blue = await owner({ kind: 'team', name: 'blue', organisation: ids.acme });
  ids.green = await owner({ kind: 'team', name: 'green', organisation: ids.globex });
  ids.bob = await owner({ kind: 'member', name: 'Bob', organisation: ids.acme });
  const ofAcme = { organisation: ids.acme };
  const people: Readonly<Record<ActorName, object>> = {
    admin: { role: 'admin' },
    auditor: { role: 'auditor' },
    'organisation admin': { role: 'admin', ...ofAcme },
    'organisation auditor': { role: 'auditor', ...ofAcme },
    'team lead': { role: 'member', ...ofAcme, teams: [{ team: ids.red, lead: true }] },
    member: { role: 'member', ...ofAcme, teams: [{ team: ids.red, lead: false }] },
  };
  for (const name of actorNames) {
    const email = `${name.replaceAll(' ', '-')}@example.com`;
    const { user, invitation } = await root.request('createUser', {
      body: { email, name: 'X', ...people[name] },
    });
    await root.request('acceptInvitation', { body: { token: invitation.token, password } });
    actors.set(name, { admin: await signIn(gateway.url, email, password), member: user.member });
  }
});
afterAll(() => gateway.close());

let made = 0;

/** Makes a key that is so related to an actor, and returns its id and secret. */
async function keyOf(relation: Relation, member: string): Promise<{ id: string; value: string }> {
  const owners: Readonly<Record<Relation, object>> = {
    own: { member },
    'own team': { team: ids.red, member: ids.bob },
    'other team': { team: ids.blue },
    'other organisation': { team: ids.green },
  };
  made += 1;
  const { key, value } = await root.request('createKey', { body: { name: `k${made}`, ...owners[relation] } });
  return { id: key.id, value };
}

/** Makes the thing that a route is about, anew for each cell, and returns its id. */
type Maker = (relation: Relation, member: string, name: RouteName) => Promise<string> | string;
const makers: Readonly<Record<string, Maker>> = {
  keys: async (relation, member) => (await keyOf(relation, member)).id,
  owners: async (relation, member, name) => {
    made += 1;
    const organisation = relation === 'other organisation' ? ids.globex : ids.acme;
    if (relation === 'own' && name === 'findOwner') return member;
    const body = { kind: 'service-account', name: `s${made}`, organisation };
    return (await root.request('createOwner', { body })).id;
  },
  users: async (relation) => {
    made += 1;
    const organisation = relation === 'other organisation' ? ids.globex : ids.acme;
    return (await root.request('createUser', { body: { email: `u${made}@example.com`, organisation } })).user
      .id;
  },
  usage: async (relation, member) => {
    const { value } = await keyOf(relation, member);
    return chat(value);
  },
  channels: () => 'demo',
};

/** Makes a call with a key, and returns the id of its record once that is written. */
async function chat(key: string): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
  });
  await response.text();
  const id = response.headers.get('x-request-id') ?? '';
  await eventually(async () => {
    await root.request('findUsage', { id });
  });
  return id;
}

const bodies: { readonly [Name in RouteName]?: (relation: Relation, member: string) => object } = {
  createKey: (relation, member) => {
    made += 1;
    const owners: Readonly<Record<Relation, object>> = {
      own: { member },
      'own team': { team: ids.red },
      'other team': { team: ids.blue },
      'other organisation': { team: ids.green },
    };
    return { name: `c${made}`, ...owners[relation] };
  },
  updateKey: () => ({ note: 'x' }),
  createOwner: (relation) => ({
    kind: 'service-account',
    name: 'n',
    organisation: relation === 'other organisation' ? ids.globex : ids.acme,
  }),
  updateOwner: () => ({ note: 'x' }),
  createUser: (relation) => {
    made += 1;
    return {
      email: `n${made}@example.com`,
      organisation: relation === 'other organisation' ? ids.globex : ids.acme,
    };
  },
  updateUser: () => ({ name: 'Y' }),
  testChannel: () => ({ model: 'demo' }),
};

const queries: { readonly [Name in RouteName]?: Readonly<Record<string, string>> } = {
  sumUsage: { by: 'model' },
};

/** Routes that are about one thing of somebody, so that each relation is a cell. */
function relationsOf(name: RouteName, { path, needs }: RouteSpec): readonly Relation[] {
  const hasOwner = ['keys', 'owners', 'users', 'usage'].includes(needs.group);
  return hasOwner && (path.includes(':id') || name in bodies) ? relations : ['own'];
}

async function cell(name: RouteName, spec: RouteSpec, actor: ActorName, relation: Relation): Promise<string> {
  const { admin, member } = actors.get(actor) ?? { admin: root, member: '' };
  const make = makers[spec.needs.group];
  const id = spec.path.includes(':id') ? ((await make?.(relation, member, name)) ?? 'none') : '';
  const body =
    spec.method === 'GET' || spec.method === 'DELETE' ? undefined : (bodies[name]?.(relation, member) ?? {});
  const query = queries[name];
  const response = await admin.send(name, {
    id,
    ...(body === undefined ? {} : { body }),
    ...(query === undefined ? {} : { query }),
  });
  await response.body?.cancel();
  return response.ok ? 'yes' : String(response.status);
}

/** A Markdown table, laid out as the formatter has it. */
function tableOf([titles = [], ...rows]: readonly (readonly string[])[]): string[] {
  const widths = titles.map((_, at) => Math.max(...[titles, ...rows].map((row) => row[at]?.length ?? 0)));
  const line = (texts: readonly string[], fill = ' '): string =>
    `| ${texts.map((text, at) => text.padEnd(widths[at] ?? 0, fill)).join(' | ')} |`;
  return [
    line(titles),
    line(
      titles.map(() => ''),
      '-',
    ),
    ...rows.map((row) => line(row)),
  ];
}

test(
  'every actor reaches what is its own and nothing else, through every route',
  { timeout: 300_000 },
  async () => {
    const rows: string[][] = [['operation', 'whose', ...actorNames]];
    for (const [name, spec] of Object.entries<RouteSpec>(routes) as [RouteName, RouteSpec][]) {
      if (spec.needs.who === 'open' || spec.needs.who === 'self') continue;
      for (const relation of relationsOf(name, spec)) {
        const cells: string[] = [];
        // oxlint-disable-next-line no-await-in-loop -- one cell at a time: each makes what it needs
        for (const actor of actorNames) cells.push(await cell(name, spec, actor, relation));
        const what = relationsOf(name, spec).length > 1 ? relation : 'any';
        rows.push([`\`${name}\``, what, ...cells]);
      }
    }
    const head = [
      '# Who may do what in the admin API',
      '',
      'This page is generated: `npx vitest run test/flows/isolation.test.ts -u` tries every cell over HTTP and writes it. _yes_: the request succeeds; for a list',
      'it then holds what the actor may see. 403: the actor may never do this. 404: the thing does not exist for this actor. 400: the request is refused because of',
      'what it asks for. Routes before a sign-in, and those about one’s own sign-in, are left out.',
      '',
      'The organisation admin, the organisation auditor, the team lead and the member belong to one organisation, the lead and the member to its team `red`, which',
      'the lead leads. _Own team_ is `red`, and a thing of it belongs to another member.',
      '',
    ];
    await expect(`${[...head, ...tableOf(rows)].join('\n')}\n`).toMatchFileSnapshot(
      '../../docs/reference/admin-access.md',
    );
  },
);

describe('lists and sums', () => {
  test('hold what the actor may see, and all of it', { timeout: 120_000 }, async () => {
    const lead = actors.get('team lead');
    const member = actors.get('member');
    const orgAdmin = actors.get('organisation admin');
    if (lead === undefined || member === undefined || orgAdmin === undefined) throw new Error('no actors');
    const keys = new Map<Relation, string>();
    const records = new Map<Relation, string>();
    for (const relation of relations) {
      const { id, value } = await keyOf(relation, member.member);
      keys.set(relation, id);
      records.set(relation, await chat(value));
    }
    const mine = new Map<Admin, readonly Relation[]>([
      [member.admin, ['own']],
      [lead.admin, ['own team']],
      [orgAdmin.admin, ['own', 'own team', 'other team']],
      [root, relations],
    ]);
    for (const [admin, seen] of mine) {
      const { keys: listed } = await admin.request('listKeys', { query: { limit: 500 } });
      const { keys: found } = await admin.request('listKeys', { query: { limit: 500, search: 'key_' } });
      for (const relation of relations) {
        const wanted = keys.get(relation);
        expect(listed.some(({ id }) => id === wanted)).toBe(seen.includes(relation));
        expect(found.some(({ id }) => id === wanted)).toBe(seen.includes(relation));
      }
      const query = admin === lead.admin ? { team: ids.red } : {};
      const usage = await admin.request('listUsage', { query: { limit: 500, ...query } });
      for (const relation of relations)
        expect(usage.records.some(({ id }) => id === records.get(relation))).toBe(seen.includes(relation));
      const sums = await admin.request('sumUsage', { query: { by: 'model', ...query } });
      expect(sums.sums.reduce((sum, { calls }) => sum + calls, 0)).toBe(usage.records.length);
      const csv = await (await admin.send('exportUsage', { query })).text();
      for (const relation of relations)
        expect(csv.includes(records.get(relation) ?? '')).toBe(seen.includes(relation));
    }
    expect((await member.admin.request('overview')).totals.calls).toBeLessThan(
      (await root.request('overview')).totals.calls,
    );
    const inTeam = await member.admin.request('listUsage', { query: { limit: 500, team: ids.red } });
    expect(inTeam.records.map(({ member: of }) => of).filter((of) => of !== member.member)).toEqual([]);
    for (const query of [{ member: ids.bob }, { organisation: ids.globex, member: ids.bob }])
      expect((await member.admin.refused('listUsage', { query })).status).toBe(404);
    expect(
      (await orgAdmin.admin.refused('sumUsage', { query: { by: 'model', organisation: ids.globex } })).status,
    ).toBe(404);
  });

  test('of the audit hold the changes of the own organisation alone', async () => {
    const orgAdmin = actors.get('organisation admin')?.admin ?? root;
    const own = await keyOf('other team', '');
    const other = await keyOf('other organisation', '');
    const { entries } = await orgAdmin.request('listAudit', { query: { limit: 500 } });
    expect(entries.some(({ target }) => target === own.id)).toBe(true);
    expect(entries.some(({ target }) => target === other.id)).toBe(false);
  });
});

test('an administrator of an organisation sets no price rule, which would stretch its budget', async () => {
  const orgAdmin = actors.get('organisation admin')?.admin ?? root;
  const free = { pricing: { factor: 0 } };
  for (const body of [free, { ...free, note: 'red' }, { pricing: null }])
    expect(await orgAdmin.refused('updateOwner', { id: ids.red, body })).toMatchObject({ status: 403 });
  const team = { kind: 'team', name: 'free', organisation: ids.acme, ...free } as const;
  expect(await orgAdmin.refused('createOwner', { body: team })).toMatchObject({ status: 403 });
  expect(await root.request('findOwner', { id: ids.red })).not.toHaveProperty('pricing');
});
