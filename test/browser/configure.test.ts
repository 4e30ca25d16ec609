import type { Page } from 'playwright-core';
import { startGateway } from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import alerts from '../../plugins/alerts/index.ts';
import dashboardPlugin from '../../plugins/dashboard/index.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { startProcess, type GatewayProcess } from '../flows/_process.ts';
import { withoutChromium } from '../support/chromium.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import {
  demoChannel,
  goTo,
  pagePlugin,
  password,
  looks,
  startDashboard,
  takePicture,
  violations,
  type Dashboard,
} from './_dashboard.ts';

const skipped = withoutChromium();
const secret = 'sk-a-secret-of-the-provider-1234';

let dashboard: Dashboard;
/** A destination of alerts. */
let receiver: ScriptedUpstream;
/** A gateway without providers and calls, in processes of its own: only such a one reloads. */
let fresh: GatewayProcess;

beforeAll(async () => {
  if (skipped !== undefined) return;
  receiver = await startUpstream((_request, response) => void response.writeHead(200).end('ok'));
  dashboard = await startDashboard(async (folder) => {
    fresh = await startProcess(`
      database: 'sqlite:./sluice.db',
      adminPassword: '${password}',
      plugins: [${pagePlugin(folder)}],
      channels: [${demoChannel}],
    `);
    // In this process: each change of the configuration would start a worker otherwise.
    const { url, key, close } = await startGateway({
      adminPassword: password,
      // Any variable that is always there.
      runtimeConfig: { env: ['PATH'] },
      prices: { 'in-the-file': { input: 1, output: 2 } },
      channels: [demo()],
      plugins: [
        dashboardPlugin({ folder }),
        modelAlias({ aliases: { 'file-alias': 'demo' } }),
        alerts({
          interval: 100,
          expiring: { 'Client secret': new Date(Date.now() + 3_600_000).toISOString() },
          destinations: {
            ops: { type: 'slack', url: receiver.url },
            nowhere: { type: 'discord', url: 'http://127.0.0.1:9/' },
          },
        }),
      ],
    });
    return { url, key, config: '', end: close };
  });
});

afterAll(async () => {
  if (skipped !== undefined) return;
  await dashboard.close();
  await receiver.close();
  await fresh.end();
});

/** Sends a request to the admin API as another administrator would. */
function sendRequest<Answer>(page: Page, method: string, path: string, body?: object): Promise<Answer> {
  return page.evaluate(
    async ([how, where, what]) => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      const headers = { 'content-type': 'application/json', 'x-csrf-token': csrfToken };
      const sent = what === null ? {} : { body: JSON.stringify(what) };
      return (await (await fetch(`/api/admin/${where}`, { method: how, headers, ...sent })).json()) as Answer;
    },
    [method, path, body ?? null] as const,
  );
}

const channel = (name: string, more = {}) => ({
  kind: 'channel',
  name,
  value: {
    type: 'openai',
    options: { key: secret, baseUrl: `${dashboard.upstream}/v1`, models: ['falls-back'], ...more },
  },
});

const call = (key: string, model = 'falls-back'): Promise<Response> =>
  fetch(`${fresh.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'falls-back' }] }),
  });

const entries = (page: Page) => page.getByRole('table', { name: 'Entries' }).locator('tbody tr');

describe.skipIf(skipped !== undefined)(`configuration in the dashboard ${skipped ?? ''}`, () => {
  test('first steps lead to a provider, a key and a call, and can be closed and found again', async () => {
    const { page, complaints } = await dashboard.openAnother({ gateway: fresh.url });
    const guide = page.getByRole('region', { name: 'First steps' });
    await guide.getByRole('button', { name: 'Add a provider' }).click();
    const form = page.getByRole('dialog', { name: 'Add channel' });
    await form.getByLabel('Name', { exact: true }).fill('first');
    await form.getByLabel('key', { exact: true }).fill(secret);
    await form.getByLabel('baseUrl', { exact: true }).fill(`${dashboard.upstream}/v1`);
    await form.getByLabel('models', { exact: true }).fill('falls-back');
    await form.getByLabel('Add an option of the channel').selectOption('weight');
    await form.getByLabel('weight', { exact: true }).fill('-1');
    await form.getByRole('button', { name: 'Create' }).click();
    await form.getByText(/^Too small/).waitFor();
    expect(await form.getByLabel('weight', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    expect(await violations(page)).toEqual([]);
    await form.getByLabel('weight', { exact: true }).fill('2');
    await form.getByRole('button', { name: 'Test channel' }).click();
    await form.getByText('It answers.').waitFor();
    await form.getByRole('button', { name: 'Create' }).click();
    await form.waitFor({ state: 'detached' });
    await guide.getByText('Add a provider (done)').waitFor();
    await guide.getByRole('button', { name: 'Create another one' }).click();
    await page.getByRole('dialog', { name: 'Add API key' }).getByLabel('Name', { exact: true }).fill('First');
    await page.getByRole('button', { name: 'Create key' }).click();
    const key = await page.locator('[data-secret]').innerText();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await guide.getByText('Waiting for a call').waitFor();
    expect(await guide.innerText()).toContain('falls-back');
    expect(await guide.innerText()).not.toContain(key);
    expect((await call(key)).status).toBe(200);
    await guide.getByText('Make the first call (done)').waitFor();
    await takePicture(page, 'guide');
    await guide.getByRole('button', { name: 'Close the first steps' }).click();
    await guide.waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    expect(await guide.count()).toBe(0);
    // A call that fails later opens no step again.
    expect((await call(key, 'nobody-has-it')).status).toBe(503);
    await expect
      .poll(() => sendRequest(page, 'GET', 'usage?limit=1'))
      .toMatchObject({ records: [{ model: 'nobody-has-it' }] });
    await goTo(page, 'First steps');
    await page.getByText('Make the first call (done)').waitFor();
    expect(complaints).toEqual([]);
  });

  test('entries of the file are locked; run-time channels are changed, ordered, switched off, deleted and restored', async () => {
    const { page, complaints } = await dashboard.open();
    await sendRequest(page, 'POST', 'config', channel('eu'));
    await sendRequest(page, 'POST', 'config', channel('us'));
    await goTo(page, 'Configuration');
    await entries(page).filter({ hasText: 'config file' }).filter({ hasText: 'demo' }).first().click();
    const file = page.getByRole('dialog', { name: 'demo', exact: true });
    expect(await file.innerText()).toMatch(/channels\[0\]/);
    expect(await file.getByRole('button', { name: 'Edit' }).count()).toBe(0);
    await page.keyboard.press('Escape');

    // A secret that is named by a reference, which stays when something else is changed.
    await entries(page)
      .filter({ has: page.getByText('us', { exact: true }) })
      .click();
    const us = page.getByRole('dialog', { name: 'us', exact: true });
    const editUs = page.getByRole('dialog', { name: 'Edit us' });
    const key = editUs.getByLabel('key', { exact: true });
    await us.getByRole('button', { name: 'Edit' }).click();
    await editUs.getByRole('button', { name: 'Replace key' }).click();
    await editUs.getByLabel('Where key is read from').selectOption({ label: 'Secret manager' });
    await key.fill('env:PATH');
    await editUs.getByRole('button', { name: 'Save' }).click();
    await us.getByText('secret manager env:PATH').waitFor();
    await us.getByRole('button', { name: 'Edit' }).click();
    expect(await key.inputValue()).toBe('env:PATH');
    await editUs.getByLabel('models', { exact: true }).fill('falls-back\nof-us');
    await editUs.getByRole('button', { name: 'Save' }).click();
    await us.getByText('falls-back, of-us').waitFor();
    const stored = await sendRequest<{ value: object }>(page, 'GET', 'config/entries/channel:us');
    expect(stored.value).toMatchObject({ options: { key: { from: 'env:PATH' } } });
    await page.keyboard.press('Escape');

    await entries(page).filter({ hasText: 'eu' }).click();
    const sheet = page.getByRole('dialog', { name: 'eu', exact: true });
    await sheet.getByText(/secret …1234/).waitFor();
    await sheet.getByRole('button', { name: 'Move down' }).click();
    await expect.poll(async () => (await entries(page).allInnerTexts()).at(-1)).toContain('eu');

    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit eu' });
    await edit.getByText('••••1234').waitFor();
    await edit.getByLabel('models', { exact: true }).fill('falls-back\nanother');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await sheet.getByText('falls-back, another').waitFor();
    await sheet.getByRole('button', { name: 'Disable' }).click();
    await sheet.getByText('disabled', { exact: true }).waitFor();
    await sheet.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog', { name: 'Delete eu?' }).getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => entries(page).filter({ hasText: 'eu' }).count()).toBe(0);

    await page.getByRole('button', { name: 'History' }).click();
    const history = page.getByRole('dialog', { name: 'History of the configuration' });
    const changes = history.getByRole('listitem').filter({ hasText: 'channel eu' });
    await changes.filter({ hasText: 'models: falls-back → falls-back, another' }).waitFor();
    await changes.filter({ hasText: 'deleted' }).getByRole('button', { name: 'Undo' }).click();
    await page
      .getByRole('dialog', { name: /^Undo change/ })
      .getByRole('button', { name: 'Undo' })
      .click();
    await expect.poll(() => entries(page).filter({ hasText: 'eu' }).count()).toBe(1);
    await history.getByText('undone').waitFor();
    expect(await page.content()).not.toContain(secret);
    expect(complaints).toEqual([]);
  });

  test('a conflict is told with what the other changed, and either side can be kept', async () => {
    const { page, complaints } = await dashboard.open();
    await sendRequest(page, 'POST', 'config', {
      kind: 'price',
      name: 'shared-price',
      value: { input: 1, output: 2 },
    });
    await page.evaluate("location.hash = '#/config?kind=price'");
    await entries(page).filter({ hasText: 'shared-price' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit shared-price' });
    await edit.getByLabel('output', { exact: true }).fill('-5');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.getByText(/Must be 0 or more dollars/).waitFor();
    await sendRequest(page, 'PATCH', 'config/entries/price:shared-price', {
      version: 1,
      value: { input: 3, output: 2 },
    });
    await edit.getByLabel('output', { exact: true }).fill('5');
    await edit.getByRole('button', { name: 'Save' }).click();
    const conflict = edit.getByRole('alert');
    await conflict.getByText('input: 1 → 3').waitFor();
    expect(await violations(page)).toEqual([]);
    await takePicture(page, 'conflict');
    await conflict.getByRole('button', { name: 'Discard mine' }).click();
    expect(await edit.getByLabel('input', { exact: true }).inputValue()).toBe('3');
    expect(await edit.getByLabel('output', { exact: true }).inputValue()).toBe('2');
    await sendRequest(page, 'PATCH', 'config/entries/price:shared-price', {
      version: 2,
      value: { input: 4, output: 2 },
    });
    await edit.getByLabel('output', { exact: true }).fill('6');
    await edit.getByRole('button', { name: 'Save' }).click();
    await conflict.getByRole('button', { name: 'Save mine over it' }).click();
    await edit.waitFor({ state: 'detached' });
    const { value } = await sendRequest<{ value: object }>(page, 'GET', 'config/entries/price:shared-price');
    expect(value).toEqual({ input: 3, output: 6 });
    expect(complaints).toEqual([]);
  });

  test('alerts are shown and acknowledged, and destinations tested, which the audit log has', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'Alerts');
    const open = page.getByRole('list', { name: 'Open alerts' });
    await open.getByText('Expiry').waitFor();
    await page.getByText(/at most once in 1 hour/).waitFor();
    await open.getByRole('button', { name: 'Acknowledge credential Client secret' }).click();
    await open.getByText('by admin password').waitFor();
    await page.getByRole('button', { name: 'Send a test to ops' }).click();
    await page.getByText('The test was delivered.').waitFor();
    await page.getByRole('button', { name: 'Send a test to nowhere' }).click();
    await page.getByText(/^The test failed/).waitFor();
    await open.getByLabel('Mute credential Client secret').selectOption({ label: 'for 1 hour' });
    await page.getByRole('button', { name: /^End the muting/ }).click();
    await expect.poll(() => open.getByText('muted').count()).toBe(0);
    await page.getByRole('button', { name: /^Past/ }).click();
    await page.getByText('No past alerts').waitFor();
    await goTo(page, 'Audit log');
    await page.getByText('Alert acknowledged').waitFor();
    expect(complaints).toEqual([]);
  });

  test.each(looks)(
    'break no rule of accessibility and fit, $colorScheme, $width pixels wide',
    async ({ colorScheme, width }) => {
      const { page, complaints } = await dashboard.openAnother({
        colorScheme,
        viewport: { width, height: 800 },
      });
      const found: Record<string, string[]> = {};
      const look = async (name: string): Promise<void> => {
        await expect.poll(() => page.locator('.spinner').count()).toBe(0);
        const fits = await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');
        found[name] = [...(await violations(page)), ...(fits ? [] : ['wider than the window'])];
        await takePicture(page, `${name}-${colorScheme}-${width}`);
      };
      // Such entries come of files that change between two starts.
      await page.route(/\/api\/admin\/config\?kind=access/, (route) =>
        route.fulfill({
          json: {
            revision: 3,
            running: 3,
            enabled: true,
            entries: [
              {
                id: 'access:*',
                kind: 'access',
                name: '*',
                origin: 'run-time',
                state: 'shadowed',
                value: ['gpt-*'],
              },
              {
                id: 'access:key_1',
                kind: 'access',
                name: 'key_1',
                origin: 'run-time',
                state: 'refused',
                version: 1,
                reason: 'the run-time model access "key_1": option "models.key_1": must be a list.',
                problem: { option: 'models.key_1', message: 'Must be a list.' },
                value: 7,
              },
            ],
          },
        }),
      );
      await goTo(page, 'Configuration');
      await entries(page).filter({ hasText: 'demo' }).first().waitFor();
      await look('config');
      await page.getByRole('button', { name: 'Add channel' }).click();
      await page.getByLabel('Kind', { exact: true }).selectOption('bedrock');
      await page.getByLabel('region', { exact: true }).waitFor();
      for (const option of ['headers', 'timeouts', 'traits'])
        await page.getByLabel('Add an option of the channel').selectOption(option);
      await page.getByRole('button', { name: 'Add to traits' }).click();
      await look('config-form');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'History' }).click();
      await look('config-history');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Model access' }).click();
      await entries(page).filter({ hasText: 'shadowed' }).click();
      await page.getByText('which is used in its place').waitFor();
      await page.keyboard.press('Escape');
      await entries(page).filter({ hasText: 'key_1' }).click();
      await page.getByRole('dialog').getByText('Must be a list.').waitFor();
      await look('config-refused');
      await page.keyboard.press('Escape');
      await goTo(page, 'Alerts');
      await page.getByRole('list', { name: 'Open alerts' }).waitFor();
      await look('alerts');
      await goTo(page, 'First steps');
      await look('first-steps');
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
      expect(complaints).toEqual([]);
    },
  );
});
