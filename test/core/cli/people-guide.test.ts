import { afterAll, beforeAll, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { scopes } from '../../../plugins/admin/access/needs.ts';
import { read } from '../../house/source.ts';
import { adminPassword, logIn } from '../../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { shell } from './_shell.ts';

const sluice = shell();
const page = read('docs/guides/people-and-roles.md');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  );

let gateway: TestGateway;
let token: string;
beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo()] });
  const admin = await logIn(gateway.url);
  ({ value: token } = await admin.request('createToken', { body: { name: 'guide', scopes: [...scopes] } }));
});
afterAll(() => gateway.close());

/** Splits a command as a shell does, as far as the guide needs it. */
const argumentsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare = '']) => quoted ?? bare);

test('every command of the guide on people and roles works, one after the other', async () => {
  const commands = blocks('sh')
    .flatMap((block) => block.split('\n'))
    .filter((line) => line.startsWith('npx sluice '));
  expect(commands.length).toBeGreaterThan(20);
  for (const command of commands) {
    // oxlint-disable-next-line no-await-in-loop -- in the order of the guide
    const result = await sluice(argumentsOf(command).slice(2), {
      SLUICE_GATEWAY: gateway.url,
      SLUICE_TOKEN: token,
    });
    expect({ command, ...result }).toMatchObject({ command, code: 0 });
  }
  const { owners } = gateway.apiKeys;
  expect(owners.list().find(({ name }) => name === 'Research')).toMatchObject({
    enabled: false,
    budgets: [{ amount: 200_000_000 }],
    endUserBudget: { amount: 1_000_000 },
  });
});

test('the configuration in the guide on people and roles is sound', async () => {
  const shown = blocks('ts');
  expect(shown).toHaveLength(1);
  const folder = operatorFolder({ 'gateway.config.ts': shown[0] ?? '' });
  const result = await sluice(['check', '--config', `${folder}/gateway.config.ts`], {
    OIDC_CLIENT_SECRET: 'a secret of the provider',
    SCIM_TOKEN: 'a token of the directory with 32 characters or more',
  });
  expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('The config is valid.') });
});
