import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutChromium } from '../support/chromium.ts';
import { goTo, looks, startDashboard, takePicture, violations, type Dashboard } from './_dashboard.ts';

const skipped = withoutChromium();

let dashboard: Dashboard;

beforeAll(async () => {
  if (skipped === undefined) dashboard = await startDashboard();
});

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

/** Sends a request to the admin API as the page would. */
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

const makeOwner = (page: Page, kind: string, name: string, more = {}): Promise<{ readonly id: string }> =>
  sendRequest(page, 'POST', 'owners', { kind, name, ...more });

describe.skipIf(skipped !== undefined)(`organisations, teams and members ${skipped ?? ''}`, () => {
  test('are made with limits, changed, switched off and deleted', async () => {
    const { page, complaints } = await dashboard.open();
    await makeOwner(page, 'organisation', 'Acme');
    await goTo(page, 'Organisations and teams');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Add an organisation, team or member' });
    await form.getByRole('button', { name: 'Create' }).click();
    await form.getByText('must not be empty').waitFor();
    await form.getByLabel('Name', { exact: true }).fill('Research');
    await form.getByRole('combobox', { name: 'Organisation' }).fill('acm');
    await form.getByRole('option', { name: 'Acme' }).waitFor();
    await page.keyboard.press('Enter');
    await form.getByRole('button', { name: 'Add a budget' }).click();
    await form.getByLabel('Amount of budget 1').fill('250');
    await form.getByLabel('Calls per minute').fill('600');
    await form.getByRole('button', { name: 'Create' }).click();

    const sheet = page.getByRole('dialog', { name: 'Research', exact: true });
    await sheet.getByText('$0 of $250.00').waitFor();
    expect(await sheet.innerText()).toMatch(/Organisation\s+Acme[\s\S]*600 calls \/ min/);
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit Research' });
    await edit.getByLabel('Calls per minute').fill('');
    await edit.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => sheet.innerText()).toMatch(/Limits\s+none/);
    await sheet.getByRole('button', { name: 'Disable' }).click();
    const sure = page.getByRole('dialog', { name: 'Disable Research?' });
    await sure.getByRole('button', { name: 'Disable' }).click();
    await sheet.getByText('disabled', { exact: true }).waitFor();
    await sheet.getByRole('button', { name: 'Delete' }).click();
    await page
      .getByRole('dialog', { name: 'Delete Research?' })
      .getByRole('button', { name: 'Delete' })
      .click();
    await sheet.waitFor({ state: 'detached' });
    await expect
      .poll(() => page.getByRole('table', { name: 'Owners' }).innerText())
      .not.toContain('Research');
    expect(complaints).toEqual([]);
  });

  test('are changed by two at the same time: the second is told what, and both changes are kept', async () => {
    const { page } = await dashboard.open();
    const { id } = await makeOwner(page, 'team', 'Shared');
    await goTo(page, 'Organisations and teams');
    await page.getByRole('table', { name: 'Owners' }).getByText('Shared').click();
    const sheet = page.getByRole('dialog', { name: 'Shared', exact: true });
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit Shared' });
    await edit.getByLabel('Calls per minute').fill('7');
    await sendRequest(page, 'PATCH', `owners/${id}`, { note: 'by somebody else' });
    await edit.getByRole('button', { name: 'Save' }).click();
    expect(await edit.getByRole('alert').innerText()).toContain('Note is now by somebody else');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    expect(await sendRequest(page, 'GET', `owners/${id}`)).toMatchObject({
      requestsPerMinute: 7,
      note: 'by somebody else',
    });
  });

  test('have a price rule, of which prices without a field are kept, and a budget of each end user', async () => {
    const { page, complaints } = await dashboard.open();
    const price = { input: 3, output: 15, services: { 'web-search': 0.02 } };
    const { id } = await makeOwner(page, 'team', 'Charged', {
      pricing: { models: [{ model: 'gpt-*', price }] },
    });
    await page.evaluate(`location.hash = '#/owners?owner=${id}'`);
    const sheet = page.getByRole('dialog', { name: 'Charged', exact: true });
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit Charged' });
    const row = (index: number) => edit.getByRole('group', { name: `Price ${index}`, exact: true });
    await row(1).getByText('Kept as it is: services (web-search $0.02).').waitFor();
    await row(1).getByLabel('Cache read').fill('0.3');
    await edit.getByLabel('Factor', { exact: true }).fill('1.2');
    await edit.getByRole('button', { name: 'Add the price of a model' }).press('Enter');
    // The field of the new row has the focus.
    await page.keyboard.type('internal/*');
    await row(2).getByLabel('Charged by').selectOption('$ per million tokens');
    await row(2).getByLabel('Input').fill('2');
    await edit.getByRole('button', { name: 'Move price 2 up' }).press('Enter');
    await edit.getByRole('button', { name: 'Move price 2 up' }).press('Enter');
    await edit.getByRole('button', { name: 'Add an end-user budget' }).click();
    await page.keyboard.type('2.5');
    await edit.getByRole('button', { name: 'Save' }).click();
    // The gateway wants both, and names the path of the one that is missing.
    await row(2).getByText('pricing.models[1].price.output').waitFor();
    expect(await row(2).getByLabel('Output').getAttribute('aria-invalid')).toBe('true');
    await row(2).getByLabel('Charged by').selectOption('a factor');
    await row(2).getByLabel('Factor').fill('0');
    await sendRequest(page, 'PATCH', `owners/${id}`, {
      pricing: { factor: 3, models: [{ model: 'gpt-*', price }] },
    });
    await edit.getByRole('button', { name: 'Save' }).click();
    expect(await edit.getByRole('alert').innerText()).toContain('Price of other models is now 3 × the cost');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    expect(await sendRequest(page, 'GET', `owners/${id}`)).toMatchObject({
      pricing: {
        factor: 1.2,
        models: [
          { model: 'gpt-*', price: { ...price, cacheRead: 0.3 } },
          { model: 'internal/*', factor: 0 },
        ],
      },
      endUserBudget: { unit: 'micro-dollar', period: 'month', amount: 2_500_000 },
    });
    const facts = await sheet.innerText();
    for (const text of ['$2.5 per month', 'services (web-search $0.02)', '0 × the cost', '1.2 × the cost'])
      expect(facts).toContain(text);
    await page.keyboard.press('Escape');
    await goTo(page, 'Audit log');
    const change = page.getByRole('row').filter({ hasText: 'Price of internal/*: 0 × the cost' });
    expect(await change.innerText()).toContain('Charged');
    expect(complaints).toEqual([]);
  });

  test('are found by name and kind, and a refusal of the gateway is shown in the form', async () => {
    const { page } = await dashboard.open();
    const organisation = await makeOwner(page, 'organisation', 'Globex');
    await makeOwner(page, 'member', 'Ada Lovelace', { organisation: organisation.id });
    await makeOwner(page, 'service-account', 'Nightly build');
    await goTo(page, 'Organisations and teams');
    const rows = page.getByRole('table', { name: 'Owners' }).locator('tbody tr');
    await page.getByRole('button', { name: 'Members', exact: true }).click();
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('Ada Lovelace')]);
    await page.getByLabel('Find an owner').fill('nobody');
    await page.getByText('Nothing fits this filter').waitFor();
    await page.getByRole('link', { name: 'Clear filter' }).click();
    await rows.filter({ has: page.getByText('Globex', { exact: true }).and(page.locator('strong')) }).click();
    await page.getByRole('link', { name: /^Show its teams/ }).click();
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('Ada Lovelace')]);
    await page.evaluate(`location.hash = '#/owners?owner=${organisation.id}'`);
    const sheet = page.getByRole('dialog', { name: 'Globex' });
    await sheet.getByRole('button', { name: 'Delete' }).click();
    await page
      .getByRole('dialog', { name: 'Delete Globex?' })
      .getByRole('button', { name: 'Delete' })
      .click();
    await page.locator('.toast.bad').waitFor();
    await sheet.waitFor();
  });

  test('own keys: shown with their owners, filtered, and moved, switched and deleted together', async () => {
    const { page, complaints } = await dashboard.open();
    const team = await makeOwner(page, 'team', 'Platform');
    await makeOwner(page, 'team', 'Billing');
    const made: string[] = [];
    for (const name of ['one', 'two', 'three']) {
      const { key } = await sendRequest<{ key: { id: string } }>(page, 'POST', 'keys', {
        name: `Owned ${name}`,
        team: team.id,
      });
      made.push(key.id);
    }
    await goTo(page, 'API keys');
    const rows = page.getByRole('table', { name: 'API keys' }).locator('tbody tr');
    await page.getByRole('combobox', { name: 'Owner' }).fill('platf');
    await page.getByRole('option', { name: /Platform/ }).click();
    await expect.poll(() => rows.count()).toBe(3);
    expect(await rows.first().innerText()).toContain('Platform');
    await page.getByLabel('Select all that are listed').check();
    // Somebody else deletes one of them meanwhile.
    await sendRequest(page, 'DELETE', `keys/${made[0]}`);
    const bulk = page.getByRole('group', { name: 'Selected keys' });
    await bulk.getByRole('button', { name: 'Disable' }).click();
    await page
      .getByRole('dialog', { name: 'Disable 3 keys?' })
      .getByRole('button', { name: 'Disable' })
      .click();
    await bulk.getByText(`There is no key ${made[0]}.`).waitFor();
    await expect.poll(() => rows.filter({ hasText: 'disabled' }).count()).toBe(2);
    await bulk.getByRole('button', { name: 'Clear selection' }).click();

    await page.getByLabel('Select Owned three').check();
    await bulk.getByRole('button', { name: 'Move to a team' }).click();
    const move = page.getByRole('dialog', { name: 'Move 1 key?' });
    await move.getByRole('combobox', { name: 'Team' }).fill('bill');
    await move.getByRole('option', { name: 'Billing' }).click();
    await move.getByRole('button', { name: 'Move' }).click();
    await expect.poll(() => rows.count()).toBe(1);
    await page.evaluate(`location.hash = '#/owners?owner=${team.id}'`);
    const sheet = page.getByRole('dialog', { name: 'Platform' });
    await sheet.getByRole('link', { name: 'Owned two' }).waitFor();
    expect(await sheet.getByRole('link', { name: 'Owned three' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a key gets a new secret while the old one goes on working for a day', async () => {
    const { page } = await dashboard.open();
    const { key } = await sendRequest<{ key: { id: string } }>(page, 'POST', 'keys', { name: 'Rotated' });
    await page.evaluate(`location.hash = '#/keys?key=${key.id}'`);
    const sheet = page.getByRole('dialog', { name: 'Rotated', exact: true });
    await sheet.getByRole('button', { name: 'Rotate' }).click();
    const sure = page.getByRole('dialog', { name: 'Give Rotated a new secret?' });
    await sure.getByLabel('The present secret').selectOption({ label: 'It works for another day' });
    await sure.getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await sheet.getByText('The old secret').waitFor();
    await sheet.getByRole('button', { name: 'End it now' }).click();
    await expect.poll(() => sheet.getByText('The old secret').count()).toBe(0);
  });

  test('a token of the admin API is made, shown once and revoked', async () => {
    const { page, complaints } = await dashboard.open();
    await makeOwner(page, 'organisation', 'Of one token');
    await goTo(page, 'Admin tokens');
    await page.getByRole('button', { name: 'Add token' }).first().click();
    const form = page.getByRole('dialog', { name: 'Add token' });
    await form.getByLabel('Name', { exact: true }).fill('For scripts');
    await form.getByRole('button', { name: 'Create token' }).click();
    await form.getByText('Choose at least one scope.').waitFor();
    await form.getByLabel('keys:read').check();
    await form.getByRole('button', { name: 'Auditor' }).click();
    await form.getByRole('combobox', { name: 'Organisation' }).fill('of one');
    await form.getByRole('option', { name: 'Of one token' }).waitFor();
    await page.keyboard.press('Enter');
    expect(await violations(page)).toEqual([]);
    await form.getByRole('button', { name: 'Create token' }).click();
    const value = await page.locator('[data-secret]').innerText();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    const status = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${value}` };
      return (await fetch(`${dashboard.gateway.url}/api/admin/keys`, { headers })).status;
    };
    expect(await status()).toBe(200);
    const table = page.getByRole('table', { name: 'Admin tokens' });
    await expect.poll(() => table.innerText()).toMatch(/Auditor\s+of Of one token/);
    const row = table.getByText('For scripts');
    expect(await page.content()).not.toContain(value);
    expect(await violations(page)).toEqual([]);
    await takePicture(page, 'tokens');
    await row.click();
    await page
      .getByRole('dialog', { name: 'Revoke For scripts?' })
      .getByRole('button', { name: 'Revoke' })
      .click();
    await page.getByText('No tokens yet').waitFor();
    expect(await status()).toBe(401);
    expect(complaints).toEqual([]);
  });

  test('of many keys only those in view are in the document, and scrolling loads the rest', async () => {
    const { page } = await dashboard.openAnother();
    await page.route(/\/api\/admin\/keys(?:\?|$)/, async (route) => {
      const start = Number(new URL(route.request().url()).searchParams.get('after') ?? 0);
      const keys = Array.from({ length: 500 }, (_, index) => ({
        id: `key_${start + index}`,
        name: `Key ${start + index}`,
        prefix: 'sk-abcd',
        suffix: 'wxyz',
        state: 'valid',
        enabled: true,
        budgets: [],
        createdAt: 0,
      }));
      await route.fulfill({ json: { keys, ...(start < 9_500 && { next: String(start + 500) }) } });
    });
    await page.evaluate("location.hash = '#/keys'");
    const table = page.getByRole('table', { name: 'API keys' });
    await table.getByText('Key 0', { exact: true }).waitFor();
    expect(await table.locator('tbody tr').count()).toBeLessThan(80);
    await expect
      .poll(async () => {
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
        return table.getByText('Key 9999', { exact: true }).count();
      })
      .toBe(1);
    expect(await table.locator('tbody tr').count()).toBeLessThan(80);
    expect(await table.getAttribute('aria-rowcount')).toBe('10001');
  });

  test.each(looks)(
    'break no rule of accessibility, $colorScheme, $width pixels wide',
    async ({ colorScheme, width }) => {
      const { page } = await dashboard.openAnother({ colorScheme, viewport: { width, height: 800 } });
      const team = await makeOwner(page, 'team', `Design ${colorScheme} ${width}`, {
        models: ['demo', 'gpt-*'],
        budgets: [{ unit: 'micro-dollar', period: 'month', amount: 100e6 }],
        requestsPerMinute: 60,
        endUserBudget: { unit: 'token', period: 'day', amount: 20_000 },
        pricing: {
          factor: 1.2,
          models: [
            { model: 'demo', factor: 0 },
            { model: 'gpt-*', price: { input: 3, output: 15, services: { 'web-search': 0.01 } } },
          ],
        },
      });
      await sendRequest(page, 'POST', 'keys', { name: 'A key of the team', team: team.id });
      const found: Record<string, string[]> = {};
      const look = async (name: string): Promise<void> => {
        await expect.poll(() => page.locator('.spinner').count()).toBe(0);
        const fits = await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');
        found[name] = [...(await violations(page)), ...(fits ? [] : ['wider than the window'])];
        await takePicture(page, `${name}-${colorScheme}-${width}`);
      };
      await page.evaluate(`location.hash = '#/owners?owner=${team.id}'`);
      await page.getByRole('link', { name: 'A key of the team' }).waitFor();
      await look('owner');
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByRole('combobox', { name: 'Organisation' }).click();
      await look('owner-form');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Add the price of a model' }).scrollIntoViewIfNeeded();
      await look('owner-form-prices');
      await page.keyboard.press('Escape');
      await page.evaluate(`location.hash = '#/keys?owner=${team.id}'`);
      await page.getByLabel('Select A key of the team').check();
      await look('keys-selected');
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
    },
  );
});
