import { describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import admin from '../../plugins/admin/index.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { filtered, patch, scimClient, scimToken } from '../plugins/admin/scim/_scim.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway.ts';
import { newDatabases } from './_one-database.ts';

const users = '/Users';
const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User';
const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group';

const newUser = (name: string, more: object = {}) => ({
  schemas: [userSchema],
  userName: `${name}@example.com`,
  name: { givenName: name, familyName: 'Jensen' },
  emails: [{ primary: true, type: 'work', value: `${name}@example.com` }],
  active: true,
  ...more,
});

async function startScim(database: string | undefined, scim: object = {}) {
  const gateway = await startGateway({
    adminPassword,
    ...(database === undefined ? {} : { database }),
    channels: [demo()],
    plugins: [admin({ scim: { token: scimToken, ...scim } })],
  });
  onTestFinished(() => gateway.close());
  return { gateway, scim: scimClient(gateway.url) };
}

describe.each(newDatabases())('SCIM with two gateways on $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'provisions a user and a group at one, and changes them at the other',
    async () => {
      const database = await url();
      const { scim: one, gateway } = await startScim(database);
      const { scim: other } = await startScim(database);
      const user = await one.expectStatus(201, 'POST', '/Users', newUser('barbara', { externalId: 'ext-1' }));
      expect(user).toMatchObject({ userName: 'barbara@example.com', active: true, externalId: 'ext-1' });
      const group = await other.expectStatus(201, 'POST', '/Groups', {
        schemas: [groupSchema],
        displayName: 'Research',
        members: [{ value: user.id }],
      });
      expect(group.id).toMatch(/^team_/);
      expect(await one.expectStatus(200, 'GET', `/Users/${user.id}`)).toMatchObject({
        groups: [{ value: group.id }],
      });
      const list = await one.expectStatus(200, 'GET', `/Users${filtered('externalId eq "ext-1"')}`);
      expect(list).toMatchObject({ totalResults: 1, Resources: [{ id: user.id }] });

      await one.expectStatus(
        204,
        'PATCH',
        `/Groups/${group.id}`,
        patch({ op: 'Remove', path: `members[value eq "${user.id}"]` }),
      );
      expect(await other.expectStatus(200, 'GET', `/Groups/${group.id}`)).toMatchObject({ members: [] });
      await other.expectStatus(204, 'DELETE', `/Users/${user.id}`);
      await one.expectStatus(404, 'GET', `/Users/${user.id}`);
      await other.expectStatus(204, 'DELETE', `/Groups/${group.id}`);
      await one.expectStatus(404, 'GET', `/Groups/${group.id}`);

      const page = await logIn(gateway.url);
      const { entries } = await page.request('listAudit');
      const made = entries
        .filter(({ actor }) => actor?.name === 'SCIM directory')
        .map(({ action }) => action);
      // Entries of one millisecond stand in any order.
      expect(made.toSorted()).toEqual([
        'owner-create',
        'owner-delete',
        'user-create',
        'user-delete',
        'user-update',
        'user-update',
      ]);
    },
  );

  test.skipIf(skip !== undefined)(
    'loses no change where both gateways change groups of one user',
    async () => {
      const database = await url();
      const { scim: one } = await startScim(database);
      const { scim: other } = await startScim(database);
      const { id } = await one.expectStatus(201, 'POST', '/Users', newUser('ann'));
      const clients = [one, other, one, other, one, other];
      const groups = await Promise.all(
        clients.map(async (scim, index) => {
          const made = await scim.expectStatus(201, 'POST', '/Groups', {
            schemas: [groupSchema],
            displayName: `G${index}`,
          });
          await scim.expectStatus(
            204,
            'PATCH',
            `/Groups/${made.id}`,
            patch({ op: 'Add', path: 'members', value: [{ value: id }] }),
          );
          return made.id;
        }),
      );
      const user = await other.expectStatus(200, 'GET', `/Users/${id}`);
      expect(user.groups.map(({ value }) => value).toSorted()).toEqual(groups.toSorted());
    },
  );
});

describe('SCIM', () => {
  test('asks for its token, and speaks of errors in its own schema', async () => {
    const { gateway, scim } = await startScim(undefined);
    for (const token of ['wrong', '', `${scimToken}x`]) {
      const answer = await scimClient(gateway.url, token).send('GET', '/Users');
      expect(answer).toMatchObject({
        status: 401,
        body: { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: '401' },
      });
    }
    expect(await scim.expectStatus(404, 'GET', '/Nothing')).toMatchObject({ status: '404' });
    await scim.expectStatus(501, 'POST', '/Bulk', {});
    await scim.expectStatus(404, 'GET', `${users}/usr_none`);
    expect(
      await scim.expectStatus(400, 'POST', '/Users', newUser('x', { userName: undefined })),
    ).toMatchObject({
      scimType: 'invalidValue',
    });
    await scim.expectStatus(415, 'POST', '/Users', 'userName=x', {
      'content-type': 'application/x-www-form-urlencoded',
    });
    await scim.expectStatus(400, 'POST', '/Users', '{"userName":');
    await scim.expectStatus(
      413,
      'POST',
      '/Users',
      JSON.stringify(newUser('x', { title: 'x'.repeat(3_000_000) })),
    );
    expect(await scim.expectStatus(400, 'GET', `/Users${filtered('userName is x')}`)).toMatchObject({
      scimType: 'invalidFilter',
    });
  });

  test('takes a token of the admin API whose holder may write users and owners', async () => {
    const { gateway } = await startScim(undefined, { token: undefined });
    const page = await logIn(gateway.url);
    const make = async (scopes: readonly string[]): Promise<string> => {
      const { value } = await page.request('createToken', {
        body: { name: 'Directory', role: 'admin', scopes },
      });
      return value;
    };
    const weak = scimClient(gateway.url, await make(['users:write']));
    await weak.expectStatus(403, 'GET', '/ServiceProviderConfig');
    const scim = scimClient(gateway.url, await make(['users:write', 'owners:write']));
    await scim.expectStatus(201, 'POST', '/Users', newUser('ann'));
    await scimClient(gateway.url, 'sla_wrong').expectStatus(401, 'GET', '/Users');
    const { entries } = await page.request('listAudit');
    expect(entries.find(({ action }) => action === 'user-create')?.actor?.name).toBe('Directory');
  });

  test('describes itself', async () => {
    const { scim } = await startScim(undefined);
    expect(await scim.expectStatus(200, 'GET', '/ServiceProviderConfig')).toMatchObject({
      patch: { supported: true },
      bulk: { supported: false },
      etag: { supported: true },
    });
    expect((await scim.expectStatus(200, 'GET', '/ResourceTypes')).Resources).toHaveLength(2);
    expect((await scim.expectStatus(200, 'GET', '/Schemas')).Resources).toHaveLength(2);
    await scim.expectStatus(200, 'GET', `/Schemas/${userSchema}`);
    await scim.expectStatus(404, 'GET', '/Schemas/urn:nothing');
  });

  // https://learn.microsoft.com/entra/identity/app-provisioning/use-scim-to-provision-users-and-groups, sections on requests.
  test('takes what Entra ID sends', async () => {
    const { scim } = await startScim(undefined);
    await scim.expectStatus(200, 'GET', `/Users${filtered('userName eq "Test_User_00aa00aa"')}`);
    const user = await scim.expectStatus(201, 'POST', '/Users', {
      schemas: [userSchema, 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
      externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
      userName: 'Test_User_00aa00aa',
      active: true,
      emails: [{ primary: true, type: 'work', value: 'Test_User_11bb11bb@testuser.com' }],
      meta: { resourceType: 'User' },
      name: { formatted: 'givenName familyName', familyName: 'familyName', givenName: 'givenName' },
      roles: [],
    });
    const path = `/Users/${user.id}`;
    expect(
      await scim.expectStatus(
        200,
        'PATCH',
        path,
        patch(
          { op: 'Replace', path: 'emails[type eq "work"].value', value: 'updatedEmail@microsoft.com' },
          { op: 'Replace', path: 'name.familyName', value: 'updatedFamilyName' },
        ),
      ),
    ).toMatchObject({
      emails: [{ value: 'updatedEmail@microsoft.com', type: 'work', primary: true }],
      name: { familyName: 'updatedFamilyName', givenName: 'givenName' },
    });
    await scim.expectStatus(
      200,
      'PATCH',
      path,
      patch({ op: 'Replace', path: 'userName', value: '5b50642d@testuser.com' }),
    );
    // With the older behaviour of the provisioning service, booleans are texts and members are named in the value.
    expect(
      await scim.expectStatus(200, 'PATCH', path, patch({ op: 'Replace', path: 'active', value: 'False' })),
    ).toMatchObject({
      active: false,
      userName: '5b50642d@testuser.com',
    });
    expect(
      await scim.expectStatus(
        200,
        'PATCH',
        path,
        patch({
          op: 'Add',
          value: {
            active: 'True',
            'name.givenName': 'dotted',
            'emails[type eq "other"].value': 'other@testuser.com',
            'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department': 'R&D',
          },
        }),
      ),
    ).toMatchObject({ active: true, name: { givenName: 'dotted' }, emails: [{}, { type: 'other' }] });

    const group = await scim.expectStatus(201, 'POST', '/Groups', {
      schemas: [groupSchema, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
      externalId: '8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159',
      displayName: 'displayName',
      meta: { resourceType: 'Group' },
    });
    const groupPath = `/Groups/${group.id}`;
    expect(await scim.expectStatus(200, 'GET', `${groupPath}?excludedAttributes=members`)).not.toHaveProperty(
      'members',
    );
    const found = await scim.expectStatus(
      200,
      'GET',
      `/Groups?excludedAttributes=members&filter=displayName%20eq%20%22displayName%22`,
    );
    expect(found).toMatchObject({ totalResults: 1, Resources: [{ id: group.id }] });
    const member = [{ $ref: null, value: user.id }];
    await scim.expectStatus(
      204,
      'PATCH',
      groupPath,
      patch({ op: 'Replace', path: 'displayName', value: 'renamed' }),
    );
    await scim.expectStatus(204, 'PATCH', groupPath, patch({ op: 'Add', path: 'members', value: member }));
    expect(await scim.expectStatus(200, 'GET', groupPath)).toMatchObject({
      displayName: 'renamed',
      members: [{ value: user.id }],
    });
    await scim.expectStatus(204, 'PATCH', groupPath, patch({ op: 'Remove', path: 'members', value: member }));
    expect(await scim.expectStatus(200, 'GET', groupPath)).toMatchObject({ members: [] });
  });

  // https://developer.okta.com/docs/api/openapi/okta-scim/guides/scim-20 and the cases of Okta-SCIM-20-SPEC-Test.json.
  test('takes what Okta sends', async () => {
    const { scim } = await startScim(undefined);
    await scim.expectStatus(200, 'GET', '/Users?count=1&startIndex=1');
    await scim.expectStatus(404, 'GET', `${users}/010101001010101011001010101011`);
    const unknown = await scim.expectStatus(200, 'GET', `/Users${filtered('userName eq "nobody@atko.com"')}`);
    expect(unknown).toMatchObject({ totalResults: 0, Resources: [] });
    const body = {
      schemas: [userSchema],
      userName: 'test.user@okta.local',
      name: { givenName: 'Test', familyName: 'User' },
      emails: [{ primary: true, value: 'test.user@okta.local', type: 'work' }],
      displayName: 'Test User',
      locale: 'en-US',
      externalId: '00ujl29u0le5T6Aj10h7',
      groups: [],
      password: '1mz050nq',
      active: true,
    };
    const user = await scim.expectStatus(201, 'POST', '/Users', body);
    expect(JSON.stringify(user)).not.toContain('1mz050nq');
    await scim.expectStatus(409, 'POST', '/Users', body);
    const caseless = await scim.expectStatus(
      200,
      'GET',
      `/Users${filtered('userName eq "TEST.USER@okta.local"')}`,
    );
    expect(caseless.totalResults).toBe(1);
    await scim.expectStatus(200, 'PUT', `/Users/${user.id}`, {
      ...body,
      id: user.id,
      name: { givenName: 'Another', familyName: 'User' },
    });
    expect(
      await scim.expectStatus(
        200,
        'PATCH',
        `/Users/${user.id}`,
        patch({ op: 'replace', value: { active: false } }),
      ),
    ).toMatchObject({ active: false, name: { givenName: 'Another' } });

    const group = await scim.expectStatus(201, 'POST', '/Groups', {
      schemas: [groupSchema],
      displayName: 'Test SCIMv2',
      members: [],
    });
    const path = `/Groups/${group.id}`;
    await scim.expectStatus(
      204,
      'PATCH',
      path,
      patch({ op: 'replace', value: { id: group.id, displayName: 'Test SCIMv3' } }),
    );
    await scim.expectStatus(
      204,
      'PATCH',
      path,
      patch({ op: 'add', path: 'members', value: [{ value: user.id, display: 'test.user@okta.local' }] }),
    );
    await scim.expectStatus(
      204,
      'PATCH',
      path,
      patch({ op: 'remove', path: `members[value eq "${user.id}"]` }),
    );
    await scim.expectStatus(
      204,
      'PATCH',
      path,
      patch({ op: 'replace', path: 'members', value: [{ value: user.id }] }),
    );
    expect(await scim.expectStatus(200, 'GET', path)).toMatchObject({
      displayName: 'Test SCIMv3',
      members: [{ value: user.id }],
    });
    await scim.expectStatus(204, 'DELETE', path);
  });

  test('lists pages in order, with the attributes that are asked for', async () => {
    const { scim } = await startScim(undefined);
    for (const name of ['cleo', 'ann', 'bob']) await scim.expectStatus(201, 'POST', '/Users', newUser(name));
    const first = await scim.expectStatus(200, 'GET', '/Users?sortBy=userName&count=2&attributes=userName');
    expect(first).toMatchObject({ totalResults: 3, startIndex: 1, itemsPerPage: 2 });
    expect(first.Resources.map(({ userName }) => userName)).toEqual(['ann@example.com', 'bob@example.com']);
    expect(Object.keys(first.Resources[0] ?? {}).toSorted()).toEqual(['id', 'schemas', 'userName']);
    const rest = await scim.expectStatus(200, 'GET', '/Users?sortBy=userName&startIndex=3&count=5000');
    expect(rest.Resources).toHaveLength(1);
    expect((await scim.expectStatus(200, 'GET', '/Users?count=0')).Resources).toEqual([]);
    const searched = await scim.expectStatus(200, 'POST', '/Users/.search', {
      filter: 'userName sw "a"',
      count: 10,
    });
    expect(searched.totalResults).toBe(1);
    await scim.expectStatus(400, 'GET', '/Users?count=many');
  });

  test('refuses to overwrite a version that it does not have any more', async () => {
    const { scim } = await startScim(undefined);
    const made = await scim.send('POST', '/Users', newUser('ann'));
    const etag = made.headers.get('etag') ?? '';
    const path = `/Users/${made.body.id}`;
    expect((await scim.send('GET', path, undefined, { 'if-none-match': etag })).status).toBe(304);
    await scim.expectStatus(200, 'PATCH', path, patch({ op: 'replace', path: 'displayName', value: 'Ann' }), {
      'if-match': etag,
    });
    await scim.expectStatus(412, 'PATCH', path, patch({ op: 'replace', path: 'displayName', value: 'Bob' }), {
      'if-match': etag,
    });
    await scim.expectStatus(412, 'DELETE', path, undefined, { 'if-match': etag });
    expect(await scim.expectStatus(200, 'GET', path)).toMatchObject({ displayName: 'Ann' });
  });

  test.each([
    ['off', 401],
    ['stay', 200],
  ] as const)(
    'switches a deactivated user off, and its keys where the setting says so: %s',
    async (setting, status) => {
      const { gateway, scim } = await startScim(undefined, { keysOfDeactivated: setting });
      const page = await logIn(gateway.url);
      const user = await scim.expectStatus(201, 'POST', '/Users', newUser('ann'));
      const { owners } = await page.request('listOwners', { query: { kind: 'member' } });
      const member = owners[0]?.id ?? '';
      const { value } = await page.request('createKey', { body: { name: 'of Ann', member } });
      const call = async (): Promise<number> => {
        const response = await fetch(`${gateway.url}/v1/models`, {
          headers: { authorization: `Bearer ${value}` },
        });
        await response.arrayBuffer();
        return response.status;
      };
      expect(await call()).toBe(200);
      await scim.expectStatus(
        200,
        'PATCH',
        `/Users/${user.id}`,
        patch({ op: 'replace', value: { active: false } }),
      );
      await eventually(async () => expect(await call()).toBe(status));
      await scim.expectStatus(
        200,
        'PATCH',
        `/Users/${user.id}`,
        patch({ op: 'replace', value: { active: true } }),
      );
      await eventually(async () => expect(await call()).toBe(200));
    },
  );

  test('takes over a team of the same name, gives roles by rule, and leaves that team when the group goes', async () => {
    const { gateway, scim } = await startScim(undefined, {
      rules: [
        { group: 'Admins', role: 'admin' },
        { group: 'Research', lead: true },
      ],
    });
    const page = await logIn(gateway.url);
    const team = await page.request('createOwner', { body: { kind: 'team', name: 'Research' } });
    const user = await scim.expectStatus(201, 'POST', '/Users', newUser('ann'));
    const group = await scim.expectStatus(201, 'POST', '/Groups', {
      displayName: 'Research',
      members: [{ value: user.id }],
    });
    expect(group.id).toBe(team.id);
    const admins = await scim.expectStatus(201, 'POST', '/Groups', {
      displayName: 'Admins',
      members: [{ value: user.id }],
    });
    await scim.expectStatus(409, 'POST', '/Groups', { displayName: 'admins' });
    await scim.expectStatus(204, 'DELETE', `/Groups/${admins.id}`);
    await scim.expectStatus(204, 'DELETE', `/Groups/${group.id}`);
    const { entries } = await page.request('listAudit');
    const roles = entries.flatMap(({ action, after }) =>
      action === 'user-update' ? [[after?.['role'], after?.['teams']]] : [],
    );
    const expected = [
      ['member', [{ team: team.id, lead: true }]],
      [
        'admin',
        [
          { team: team.id, lead: true },
          { team: admins.id, lead: false },
        ],
      ],
      ['member', [{ team: team.id, lead: true }]],
      ['member', []],
    ];
    // Entries of one millisecond stand in any order.
    expect(roles.map((one) => JSON.stringify(one)).toSorted()).toEqual(
      expected.map((one) => JSON.stringify(one)).toSorted(),
    );
    const left = await page.request('listOwners', { query: { kind: 'team' } });
    expect(left.owners.map(({ id }) => id)).toEqual([team.id]);
  });

  test('refuses members that do not exist and more operations than it takes', async () => {
    const { scim } = await startScim(undefined);
    await scim.expectStatus(400, 'POST', '/Groups', { displayName: 'A', members: [{ value: 'usr_none' }] });
    const { id } = await scim.expectStatus(201, 'POST', '/Groups', { displayName: 'A' });
    const many = Array.from({ length: 1_001 }, () => ({ op: 'add', path: 'members', value: [] }));
    expect(await scim.expectStatus(400, 'PATCH', `/Groups/${id}`, patch(...many))).toMatchObject({
      scimType: 'tooMany',
    });
    expect(await scim.expectStatus(400, 'PATCH', `/Groups/${id}`, patch({ op: 'remove' }))).toMatchObject({
      scimType: 'noTarget',
    });
    expect(
      await scim.expectStatus(400, 'PATCH', `/Groups/${id}`, patch({ op: 'move', path: 'a' })),
    ).toMatchObject({
      scimType: 'invalidSyntax',
    });
    expect(
      await scim.expectStatus(400, 'PATCH', `/Groups/${id}`, patch({ op: 'add', path: 'a b', value: 1 })),
    ).toMatchObject({
      scimType: 'invalidPath',
    });
    expect(
      await scim.expectStatus(
        400,
        'PATCH',
        `/Groups/${id}`,
        patch({ op: 'replace', path: 'id', value: 'x' }),
      ),
    ).toMatchObject({
      scimType: 'mutability',
    });
  });
});
