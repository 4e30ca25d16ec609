import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startProcess, type GatewayProcess } from '../flows/_process.ts';
import { startChromium, withoutChromium } from '../support/chromium.ts';
import { freePort } from '../support/free-port.ts';
import { startIdentityProvider, type IdentityProvider } from '../support/identity-provider.ts';
import { patience } from '../support/patience.ts';
import { newDatabases } from '../flows/_one-database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const skipped = withoutChromium();
const scimToken = 'a-scim-token-of-more-than-32-characters';

let browser: Browser;
let folder: string;

beforeAll(async () => {
  if (skipped !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'sluice-sign-in-'));
  // In a process of its own: the page is built for production, and tests are not run so.
  await promisify(execFile)(
    process.execPath,
    [join(root, 'node_modules/vite/bin/vite.js'), 'build', 'plugins/dashboard/web', '--outDir', folder],
    { cwd: root, env: { PATH: process.env.PATH, NODE_ENV: 'production' } },
  );
  browser = await startChromium();
});

afterAll(async () => {
  if (skipped !== undefined) return;
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Stage {
  readonly gateway: GatewayProcess;
  readonly provider: IdentityProvider;
  readonly url: string;
}

/** Starts a gateway and the provider at which its people sign in. */
async function startStage(database: string): Promise<Stage> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = await startIdentityProvider({
    client_id: 'sluice',
    client_secret: 'a-secret-of-the-gateway-at-the-provider',
    redirect_uris: [`${url}/api/admin/sign-in/corp/callback`],
    post_logout_redirect_uris: [`${url}/dashboard/`],
    backchannel_logout_uri: `${url}/api/admin/sign-in/corp/logout`,
    grant_types: ['authorization_code', 'refresh_token'],
  });
  onTestFinished(() => provider.close());
  const gateway = await startProcess(`
    listen: { port: ${port} },
    database: '${database}',
    adminPassword: 'a long admin password',
    channels: [(await import('${root}channels/demo/index.ts')).default()],
    plugins: [
      (await import('${root}plugins/dashboard/index.ts')).default({ folder: '${folder}' }),
      (await import('${root}plugins/admin/index.ts')).default({
        scim: { token: '${scimToken}' },
        signIn: {
          publicUrl: '${url}',
          providers: [{
            id: 'corp', label: 'Sign in with Corp', issuer: '${provider.url}',
            clientId: 'sluice', clientSecret: 'a-secret-of-the-gateway-at-the-provider',
            scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
            authorizationParameters: { prompt: 'consent' },
            recheckMinutes: 0.02,
            rules: [{ group: 'gateway-admins', role: 'admin' }, { group: 'staff', role: 'member' }],
          }],
        },
      }),
    ],
  `);
  onTestFinished(() => gateway.end());
  return { gateway, provider, url };
}

/** Opens the login page in a browser of its own. */
async function openPage(url: string): Promise<Page> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(patience.wait);
  await page.goto(`${url}/dashboard/`);
  return page;
}

/** Signs in at the provider's own pages. */
async function signIn(page: Page, login: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in with Corp' }).click();
  const name = page.locator('input[name=login]');
  const consent = page.getByRole('button', { name: 'Continue' });
  await name.or(consent).waitFor();
  if (await name.isVisible()) {
    await name.fill(login);
    await page.locator('input[name=password]').fill('any');
    await page.getByRole('button', { name: 'Sign-in' }).click();
  }
  await consent.click();
}

const views = (page: Page) => page.getByRole('navigation', { name: 'Views' });

describe.skipIf(skipped !== undefined).each(newDatabases())(
  `signing in at oidc-provider with Chromium, on $kind ${skipped ?? ''}`,
  ({ url: newDatabase, skip }) => {
    test.skipIf(skip !== undefined)(
      'groups give roles, one that goes ends the session, and a logout ends both',
      async () => {
        const { provider, url } = await startStage(await newDatabase());
        provider.accounts.set('ann', { email: 'ann@example.com', name: 'Ann', groups: ['gateway-admins'] });
        const page = await openPage(url);
        await signIn(page, 'ann');
        await views(page).waitFor();
        const status = await page.evaluate(() =>
          fetch('/api/admin/status').then((response) => response.status),
        );
        expect(status).toBe(200);

        provider.accounts.set('ann', { email: 'ann@example.com', name: 'Ann', groups: ['staff'] });
        const session = () =>
          page.evaluate(() => fetch('/api/admin/session').then((response) => response.status));
        await expect.poll(session).toBe(401);
        await page.reload();
        await signIn(page, 'ann');
        await views(page).waitFor();
        expect(
          await page.evaluate(() => fetch('/api/admin/status').then((response) => response.status)),
        ).toBe(403);

        await page.getByRole('button', { name: 'Log out' }).click();
        await page.getByRole('button', { name: 'Yes, sign me out' }).click();
        await page.getByRole('link', { name: 'Sign in with Corp' }).waitFor();
        expect(new URL(page.url()).origin).toBe(url);
        expect(await session()).toBe(401);

        provider.accounts.set('ann', { email: 'ann@example.com', name: 'Ann', groups: [] });
        await signIn(page, 'ann');
        await page.getByRole('alert').getByText('None of your groups may sign in here').waitFor();
        expect(await session()).toBe(401);
      },
    );

    test.skipIf(skip !== undefined)(
      'a user whom the directory switches off is out at once, and stays out',
      async () => {
        const { provider, url } = await startStage(await newDatabase());
        provider.accounts.set('bob', { email: 'bob@example.com', name: 'Bob', groups: ['staff'] });
        const page = await openPage(url);
        await signIn(page, 'bob');
        await views(page).waitFor();
        const headers = { authorization: `Bearer ${scimToken}`, 'content-type': 'application/scim+json' };
        const found = await fetch(`${url}/scim/v2/Users?filter=userName%20eq%20%22bob@example.com%22`, {
          headers,
        });
        const {
          Resources: [user],
        } = (await found.json()) as { Resources: [{ id: string }] };
        const changed = await fetch(`${url}/scim/v2/Users/${user.id}`, {
          method: 'PATCH',
          headers,
          body: JSON.stringify({ Operations: [{ op: 'replace', value: { active: false } }] }),
        });
        expect(changed.status).toBe(200);
        expect(
          await page.evaluate(() => fetch('/api/admin/session').then((response) => response.status)),
        ).toBe(401);
        await page.reload();
        await signIn(page, 'bob');
        await page.getByRole('alert').getByText('Your user is switched off').waitFor();
      },
    );
  },
);
