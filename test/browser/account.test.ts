import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stepAt } from '../../core/state/users/totp.ts';
import { withoutChromium } from '../support/chromium.ts';
import { eventually } from '../support/eventually.ts';
import { goTo, login, looks, startDashboard, takePicture, violations, type Dashboard } from './_dashboard.ts';
import { appCode } from './_totp.ts';

const skipped = withoutChromium();
const email = 'grace@example.com';
const first = 'correct horse battery';
const second = 'another horse battery';

let dashboard: Dashboard;
let team = '';
let organisation = '';
/** Secrets of keys: of the team, of the user and of nobody. */
const keys = { team: '', own: '', nobody: '' };

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

/** Makes a call and returns its id. */
async function call(secret: string, model = 'demo', headers = {}): Promise<string> {
  const response = await fetch(`${dashboard.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, user: '=end-user-7', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await response.text();
  return response.headers.get('x-request-id') ?? '';
}

async function signIn(page: Page, password: string, code?: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  if (code !== undefined) {
    await page.getByLabel('Code', { exact: true }).fill(code);
    await page.getByRole('button', { name: 'Log in' }).click();
  }
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
}

/** Looks at what a page shows in both themes and widths; returns what is wrong. */
async function lookAt(page: Page, name: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const { colorScheme, width } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 850 });
    await expect.poll(() => page.locator('.spinner').count()).toBe(0);
    const fits = await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');
    wrong.push(...(await violations(page)), ...(fits ? [] : [`${width}: wider than the window`]));
    await takePicture(page, `${name}-${colorScheme}-${width}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1360, height: 850 });
  return wrong;
}

beforeAll(async () => {
  if (skipped !== undefined) return;
  dashboard = await startDashboard();
  const { page } = await dashboard.open();
  const owner = async (body: object): Promise<string> =>
    (await sendRequest<{ id: string }>(page, 'POST', 'owners', body)).id;
  organisation = await owner({ kind: 'organisation', name: 'Acme' });
  team = await owner({ kind: 'team', name: 'Research', organisation, pricing: { factor: 1.5 } });
  const { user, invitation } = await sendRequest<{ user: { member: string }; invitation: { token: string } }>(
    page,
    'POST',
    'users',
    { email, name: 'Grace', organisation, teams: [{ team, lead: false }] },
  );
  await sendRequest(page, 'POST', 'invitation', { token: invitation.token, password: first });
  const key = async (body: object): Promise<string> =>
    (await sendRequest<{ value: string }>(page, 'POST', 'keys', body)).value;
  keys.team = await key({ name: 'Of the team', team, tags: ['nightly'], models: ['demo'] });
  keys.own = await key({ name: "Grace's key", member: user.member, models: ['demo', 'demo-thinking'] });
  keys.nobody = await key({ name: "Nobody's key" });
  const ids = [
    await call(keys.team),
    await call(keys.team),
    await call(keys.team, 'not-allowed'),
    await call(keys.own),
    await call(keys.nobody, 'nobody-answers'),
  ];
  await eventually(async () => {
    const status = await page.evaluate<number>(
      `fetch('/api/admin/usage/${ids.at(-1)}').then(({ status }) => status)`,
    );
    if (status !== 200) throw new Error('not recorded yet');
  });
}, 120_000);

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

describe.skipIf(skipped !== undefined)(`one's own account ${skipped ?? ''}`, () => {
  test('has a name, a password, a second factor and sessions, and signs out everywhere', async () => {
    const { page, context, complaints } = await dashboard.openAnother({ stranger: true });
    await signIn(page, first);
    await page.getByRole('link', { name: 'Your account' }).click();
    await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('Grace Hopper');
    await page.getByRole('button', { name: 'Save name' }).click();
    await page.getByText('Your name is saved.').waitFor();

    const password = page.getByRole('region', { name: 'Password' });
    await password.getByLabel('Current password').fill('not this one at all');
    await password.getByLabel('New password').fill(second);
    await password.getByLabel('The same again').fill('other');
    await password.getByRole('button', { name: 'Change password' }).click();
    await password.getByText('The two passwords differ.').waitFor();
    await password.getByLabel('The same again').fill(second);
    await password.getByRole('button', { name: 'Change password' }).click();
    await password.getByText('Wrong password.').waitFor();
    expect(await password.getByLabel('Current password').getAttribute('aria-invalid')).toBe('true');
    await password.getByLabel('Current password').fill(first);
    await password.getByRole('button', { name: 'Change password' }).click();
    await page.getByText('Your password is changed').waitFor();
    expect(await password.getByLabel('New password').inputValue()).toBe('');

    await page.getByRole('button', { name: 'Set up' }).click();
    const dialog = page.getByRole('dialog', { name: 'Set up a second factor' });
    await dialog.getByRole('img', { name: 'QR code for an authenticator app' }).waitFor();
    const secret = await dialog.locator('[data-secret]').innerText();
    expect(await lookAt(page, 'second-factor')).toEqual([]);
    await dialog.getByRole('textbox', { name: 'Code' }).fill('000000');
    await page.keyboard.press('Enter');
    await dialog.getByText('This code is wrong').waitFor();
    const used = stepAt(Date.now());
    await dialog.getByRole('textbox', { name: 'Code' }).fill(appCode(secret, used));
    await page.keyboard.press('Enter');
    const once = page.getByRole('dialog', { name: 'Keep your recovery codes' });
    const codes = (await once.locator('[data-secret]').innerText()).split('\n');
    expect(codes.length).toBeGreaterThanOrEqual(8);
    expect(await lookAt(page, 'recovery-codes')).toEqual([]);
    await once.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('region', { name: 'Second factor' }).getByText('on', { exact: true }).waitFor();
    expect(await page.content()).not.toContain(codes[0]);

    const other = await dashboard.openAnother({ stranger: true });
    await signIn(other.page, second, codes[0]);
    const sessions = page.getByRole('region', { name: 'Sessions' });
    await page.reload();
    await sessions.getByText('this one').waitFor();
    await expect.poll(() => sessions.getByRole('button', { name: /^End the session/ }).count()).toBe(1);
    expect(await lookAt(page, 'account')).toEqual([]);
    await sessions.getByRole('button', { name: /^End the session/ }).click();
    await page.getByText('The session is over.').waitFor();
    await other.page.reload();
    await other.page.getByLabel('Email').waitFor();

    await page.getByRole('button', { name: 'Remove' }).click();
    const sure = page.getByRole('dialog', { name: 'Remove the second factor?' });
    await sure.getByLabel('Code').fill(codes[0] ?? '');
    await sure.getByRole('button', { name: 'Remove' }).click();
    await sure.getByText('This code is wrong, or was used already.').waitFor();
    await sure.getByLabel('Code').fill(codes[1] ?? '');
    await sure.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('region', { name: 'Second factor' }).getByText('off', { exact: true }).waitFor();

    await signIn(other.page, second);
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await page
      .getByRole('dialog', { name: 'Sign out everywhere?' })
      .getByRole('button', { name: 'Sign out' })
      .click();
    await page.getByLabel('Email').waitFor();
    await other.page.reload();
    await other.page.getByLabel('Email').waitFor();
    expect(complaints).toEqual([]);

    await signIn(page, second);
    await goTo(page, 'Playground');
    const offered = page.locator('#playground-models option');
    await expect
      .poll(() => offered.evaluateAll((all) => all.map((one) => one.getAttribute('value'))))
      .toEqual(['demo', 'demo-thinking']);
    await goTo(page, 'Models and prices');
    await page.getByRole('table', { name: 'Models' }).getByText('demo-thinking').waitFor();
    expect(await page.getByRole('columnheader', { name: 'Channels' }).count()).toBe(0);
    await goTo(page, 'Usage log');
    const calls = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
    await expect.poll(() => calls.count()).toBe(1);
    expect(await violations(page)).toEqual([]);

    // Her session ends without her, and somebody else signs in: nothing that she has read is left.
    await context.clearCookies();
    await page.getByRole('link', { name: 'API keys' }).click();
    await login(page);
    await goTo(page, 'Usage log');
    await calls.first().waitFor();
    expect(await calls.count()).toBe(5);
  });

  test('is not shown to the admin password, which has none', async () => {
    const { page } = await dashboard.open();
    expect(await page.getByRole('link', { name: 'Your account' }).count()).toBe(0);
    await page.evaluate("location.hash = '#/account'");
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });
});

describe.skipIf(skipped !== undefined)(`the spend of the dashboard ${skipped ?? ''}`, () => {
  test('is summed by teams with what they are charged, by models and others, compared, and saved as a table', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'Spend');
    const table = page.getByRole('table', { name: 'Sums' });
    const rows = table.locator('tbody tr');
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringMatching(/Research[\s\S]*new/)]);
    const cells = await rows.first().locator('td').allInnerTexts();
    const dollars = cells.map((cell) => Number.parseFloat(cell.replace('$', '')));
    expect(dollars[2]).toBeCloseTo(1.5 * (dollars[1] ?? 0), 2);
    const heads = await table.locator('th').allInnerTexts();
    const of = (name: string): string | undefined => cells[heads.findIndex((head) => head.startsWith(name))];
    expect([of('Calls'), of('Failed'), of('Refused')]).toEqual(['3', '0', '1']);
    expect(await lookAt(page, 'spend')).toEqual([]);

    await page.getByRole('button', { name: 'Tag', exact: true }).click();
    await rows.getByText('nightly').waitFor();
    await page.getByRole('button', { name: 'End user', exact: true }).click();
    await rows.getByText('=end-user-7').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^spend-by-endUser-[\d-]+\.csv$/);
    const text = await readFile(await download.path(), 'utf8');
    // A program that reads tables would take it for a formula.
    expect(text).toContain(`"'=end-user-7"`);
    expect(text).toMatch(/all calls,,\d+\.\d{6}/);

    await page.getByLabel('Time', { exact: true }).selectOption('custom');
    await page.getByLabel('Time zone').selectOption('Australia/Adelaide');
    await page.getByLabel('From').fill('2020-01-01');
    await page.getByLabel('To', { exact: true }).fill('2020-01-31');
    await page.getByText('No calls in this time').waitFor();
    await page.getByLabel('Time', { exact: true }).selectOption('7d');
    await page.getByRole('button', { name: 'Model', exact: true }).click();
    await page.getByText('Narrow by owner').click();
    await page.getByRole('combobox', { name: 'Team' }).fill('rese');
    await page.getByRole('option', { name: 'Research' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    expect(await violations(page)).toEqual([]);
    await rows.getByRole('link', { name: 'demo', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Usage log' }).waitFor();
    await expect.poll(() => page.getByRole('table', { name: 'Calls' }).locator('tbody tr').count()).toBe(2);
    expect(complaints).toEqual([]);
  });

  test('of each key stands in the list of keys, which it sorts', async () => {
    const { page } = await dashboard.open();
    await goTo(page, 'API keys');
    const rows = page.getByRole('table', { name: 'API keys' }).locator('tbody tr');
    await expect
      .poll(() => rows.filter({ hasText: 'Of the team' }).innerText())
      .toMatch(/\$0\.\d+\s+3 calls/);
    await page.getByRole('button', { name: 'Highest spend' }).click();
    await expect
      .poll(() => rows.allInnerTexts())
      .toEqual([
        expect.stringContaining('Of the team'),
        expect.stringContaining("Grace's key"),
        expect.stringContaining("Nobody's key"),
      ]);
    expect(await lookAt(page, 'keys-by-spend')).toEqual([]);
    await page.getByLabel('Find an API key').fill('nobody');
    await expect.poll(() => rows.count()).toBe(1);
    expect(page.url()).not.toContain('sort=spend');
  });
});

describe.skipIf(skipped !== undefined)(`the log of calls ${skipped ?? ''}`, () => {
  test('finds calls by a part of the model, the class of the status and the owner, and tells all of one', async () => {
    const { page } = await dashboard.open();
    const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
    await goTo(page, 'Usage log');
    await page.getByLabel('Model', { exact: true }).fill('ANSWER');
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('nobody-answers')]);
    await page.getByLabel('Model', { exact: true }).fill('');
    await expect.poll(() => rows.count()).toBe(5);
    await page.getByLabel('Status class').selectOption('4');
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('not-allowed')]);
    await page.getByLabel('Status class').selectOption('');
    await page.getByLabel('Outcome').selectOption('refused');
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByLabel('Outcome').selectOption('');
    await page.getByText('More filters').click();
    await page.getByRole('combobox', { name: 'Team' }).fill('rese');
    await page.getByRole('option', { name: 'Research' }).click();
    await expect.poll(() => rows.count()).toBe(3);
    await rows.last().click();
    const detail = page.getByRole('dialog', { name: 'Call' });
    await detail.getByText('Charged').waitFor();
    expect(await detail.innerText()).toMatch(
      /Organisation\s+Acme[\s\S]*Team\s+Research[\s\S]*End user\s+=end-user-7[\s\S]*Tags\s+nightly/,
    );
    expect(await lookAt(page, 'call-of-team')).toEqual([]);
  });

  test('of thousands of calls only those in view are in the document, and scrolling loads the rest', async () => {
    const { page } = await dashboard.openAnother();
    await page.route(/\/api\/admin\/usage\?/, async (route) => {
      const start = Number(new URL(route.request().url()).searchParams.get('after') ?? 0);
      const records = Array.from({ length: 500 }, (_, index) => ({
        id: `req_${start + index}`,
        at: 1_000 * (10_000 - start - index),
        ip: '::1',
        operation: 'chat',
        format: 'chat-completions',
        model: `model-${start + index}`,
        stream: false,
        status: 200,
        ended: 'complete',
        input: 1,
        output: 1,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        ms: 1,
      }));
      await route.fulfill({ json: { records, ...(start < 4_500 && { next: String(start + 500) }) } });
    });
    await goTo(page, 'Usage log');
    const table = page.getByRole('table', { name: 'Calls' });
    await table.getByText('model-0', { exact: true }).waitFor();
    expect(await table.locator('tbody tr').count()).toBeLessThan(80);
    await expect
      .poll(async () => {
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
        return table.getByText('model-4999', { exact: true }).count();
      })
      .toBe(1);
    expect(await table.locator('tbody tr').count()).toBeLessThan(80);
  });
});
