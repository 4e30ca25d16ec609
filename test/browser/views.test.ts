import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutChromium } from '../support/chromium.ts';
import { eventually } from '../support/eventually.ts';
import {
  goTo,
  looks,
  makeKey,
  startDashboard,
  takePicture,
  violations,
  type Dashboard,
} from './_dashboard.ts';

const skipped = withoutChromium();

let dashboard: Dashboard;
/** A key that may spend dollars without end: one with a budget is refused for models without a price. */
let key = '';

const titles = [
  'Overview',
  'Live calls',
  'Spend',
  'Usage log',
  'API keys',
  'Organisations and teams',
  'Channels',
  'Models and prices',
  'Playground',
  'Processes',
  'Users',
  'Admin tokens',
  'Audit log',
];
const phone = { width: 390, height: 800 };
/** Pixels between a card and the edge of a phone. */
const margin = 14;

/** Makes a call; returns its id, as its client sees it. */
async function call(secret: string, model: string, content = 'Hello', more = {}): Promise<string> {
  const response = await fetch(`${dashboard.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }], ...more }),
  });
  await response.text();
  return response.headers.get('x-request-id') ?? '';
}

/** Waits until the usage log has a call. */
const recorded = (page: Page, id: string): Promise<void> =>
  eventually(async () => {
    const status = await page.evaluate<number>(
      `fetch('/api/admin/usage/${id}').then(({ status }) => status)`,
    );
    if (status !== 200) throw new Error(`${id} is not recorded`);
  });

async function settled(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.spinner').count()).toBe(0);
}

beforeAll(async () => {
  if (skipped !== undefined) return;
  dashboard = await startDashboard();
  const { page } = await dashboard.open();
  await makeKey(page, { name: 'With a budget', dollars: '50', models: 'demo\nnobody-*' });
  key = await makeKey(page, { name: 'Of the views' });
  const ids = [
    await call(key, 'demo'),
    await call(key, 'demo', '!status=429 Hello'),
    await call(key, 'nobody-answers'),
    await call(key, 'falls-back'),
    await call(key, 'a-model-whose-name-is-longer-than-any-column-'.repeat(3)),
  ];
  await recorded(page, ids.at(-1) ?? '');
});

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

const calls = (page: Page): Locator => page.getByRole('table', { name: 'Calls' }).locator('tbody tr');

describe.skipIf(skipped !== undefined)(`the views of the dashboard ${skipped ?? ''}`, () => {
  test.each(looks)(
    'break no rule of accessibility and fit, $colorScheme, $width pixels wide',
    async ({ colorScheme, width }) => {
      const { page, complaints } = await dashboard.openAnother({
        colorScheme,
        viewport: { width, height: 800 },
      });
      const found: Record<string, string[]> = {};
      const look = async (name: string): Promise<void> => {
        await settled(page);
        const fits = await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth');
        found[name] = [...(await violations(page)), ...(fits ? [] : ['wider than the window'])];
        await takePicture(page, `${name.toLowerCase().replaceAll(' ', '-')}-${colorScheme}-${width}`);
      };
      for (const title of titles) {
        await goTo(page, title);
        if (title === 'Live calls') {
          await page.getByText('running').waitFor();
          await call(key, 'demo');
          await page.getByRole('row', { name: /demo/ }).first().waitFor();
        }
        await look(title);
      }
      await goTo(page, 'Usage log');
      await page.getByText('More filters').click();
      await look('Filters');
      await calls(page).first().click();
      await page.getByRole('dialog', { name: 'Call' }).getByText('Tokens and cost').waitFor();
      await look('Call');
      await page.keyboard.press('Escape');
      await goTo(page, 'API keys');
      await page.getByRole('table').getByText('Of the views').click();
      await page.getByRole('dialog', { name: 'Of the views' }).waitFor();
      await look('API key');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Add API key' }).click();
      await look('New API key');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByLabel('Admin password').waitFor();
      await look('Login');
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
      expect(complaints).toEqual([]);
    },
  );

  test('show on a phone which view is open', async () => {
    const { page } = await dashboard.openAnother({ viewport: phone });
    const scrollPosition = async (): Promise<{ readonly left: number; readonly right: number }> => {
      const box = await page.locator('nav [aria-current=page]').boundingBox();
      return { left: box?.x ?? -1, right: (box?.x ?? 0) + (box?.width ?? 999) };
    };
    for (const title of titles.toReversed()) {
      // By the address: a click on a link would bring it into view by itself.
      const name = await page.getByRole('link', { name: title, exact: true }).getAttribute('href');
      await page.evaluate(`location.hash = '${name}'`);
      await page.getByRole('heading', { level: 1, name: title }).waitFor();
      await expect
        .poll(async () => (await scrollPosition()).left, { message: title })
        .toBeGreaterThanOrEqual(0);
      await expect
        .poll(async () => (await scrollPosition()).right, { message: title })
        .toBeLessThanOrEqual(phone.width);
    }
  });

  test.each([
    ['Usage log', 'Calls', ['Status', 'Time', 'Model', 'Cost', 'Duration']],
    ['Models and prices', 'Models', ['Model', 'Input', 'Output']],
    ['API keys', 'API keys', ['Name', 'State']],
  ])('show on a phone, in %s, what a row is about', async (title, label, heads) => {
    const { page } = await dashboard.openAnother({ viewport: phone });
    await goTo(page, title);
    const table = page.getByRole('table', { name: label });
    for (const name of heads) {
      const box = await table.getByRole('columnheader', { name, exact: true }).boundingBox();
      expect({ name, right: (box?.x ?? 0) + (box?.width ?? 999) }).toSatisfy(
        ({ right }: { readonly right: number }) => right <= phone.width - margin,
      );
    }
  });
});

describe.skipIf(skipped !== undefined)(`the usage log of the dashboard ${skipped ?? ''}`, () => {
  test('is narrowed by request id, duration and cost, and keeps the filter in its address', async () => {
    const { page } = await dashboard.open();
    const cheap = await call(key, 'demo', 'Cheap');
    const dear = await call(key, 'demo', 'Dear '.repeat(3_000));
    await recorded(page, dear);
    await goTo(page, 'Usage log');
    await page.getByLabel('Request id').fill(` ${cheap} `);
    await expect.poll(() => calls(page).count()).toBe(1);
    await calls(page).click();
    await page.getByRole('dialog', { name: 'Call' }).getByText(cheap).waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByText('More filters').click();
    await page.getByLabel('Min cost, $').fill('1.2');
    await expect.poll(() => calls(page).allInnerTexts()).toEqual([expect.stringMatching(/\$\d\.\d\d/)]);
    await page.getByLabel('Min duration, s').fill('3600');
    await page.getByText('No call fits this filter').waitFor();
    await page.reload();
    expect(await page.getByLabel('Min cost, $').inputValue()).toBe('1.2');
    await page.getByRole('link', { name: 'Clear filter' }).click();
    await expect.poll(() => calls(page).count()).toBeGreaterThan(2);
  });

  test('is sorted by a click on a head or by the list of orders, and exports without an order', async () => {
    const { page } = await dashboard.open();
    await recorded(page, await call(key, 'demo', 'Dear '.repeat(4_000)));
    await goTo(page, 'Usage log');
    const head = page.getByRole('columnheader', { name: 'Cost' });
    await head.getByRole('button').click();
    await expect.poll(() => head.getAttribute('aria-sort')).toBe('descending');
    await expect.poll(() => calls(page).first().innerText()).toMatch(/\$\d\.\d\d/);
    expect(await page.getByLabel('Order').inputValue()).toBe('cost');
    const csv = (await page.getByRole('link', { name: 'CSV' }).getAttribute('href')) ?? '';
    expect(await page.evaluate<number>(`fetch('${csv}').then(({ status }) => status)`)).toBe(200);
    await page.getByLabel('Order').selectOption({ label: 'Longest first' });
    const duration = page.getByRole('columnheader', { name: 'Duration' });
    await expect.poll(() => duration.getAttribute('aria-sort')).toBe('descending');
    await page.getByRole('columnheader', { name: 'Time' }).getByRole('button').click();
    await expect.poll(() => duration.getAttribute('aria-sort')).toBeNull();
  });

  test('shows why a call failed, and every attempt', async () => {
    const { page } = await dashboard.open();
    const id = await call(key, 'falls-back');
    await recorded(page, id);
    await page.evaluate(`location.hash = '#/usage?call=${id}'`);
    const detail = page.getByRole('dialog', { name: 'Call' });
    const attempts = detail.locator('.attempts li');
    await attempts.first().waitFor();
    expect(await attempts.allInnerTexts()).toEqual([
      expect.stringMatching(/failed[\s\S]*overloaded[\s\S]*HTTP 503: The engine is currently overloaded\./),
      expect.stringMatching(/answered[\s\S]*slow/),
    ]);
    await takePicture(page, 'call-attempts');
    await page.keyboard.press('Escape');
    const refused = await call(key, 'nobody-answers');
    await recorded(page, refused);
    await page.evaluate(`location.hash = '#/usage?call=${refused}'`);
    await expect.poll(() => detail.locator('.notice').innerText()).toMatch(/Cause: \S+/);
  });

  // What the admin API says of a log with more records than one page reads: it takes too long to write them here.
  test('leads on to older calls where a page found none, and says which calls an order left out', async () => {
    const { page } = await dashboard.openAnother();
    const searches: number[] = [];
    await page.route(/\/api\/admin\/usage\?/, async (route) => {
      const url = new URL(route.request().url());
      if (url.searchParams.get('sort') === 'cost') {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), comparedSince: Date.now() } });
      } else if (url.searchParams.get('after') === '1.') {
        url.searchParams.delete('after');
        await route.continue({ url: url.href });
      } else {
        // Six pages without a record, of which the last waits for a click.
        const searchedSince = Number.parseInt(url.searchParams.get('after') ?? '7', 10) - 1;
        searches.push(searchedSince);
        await route.fulfill({ json: { records: [], next: `${searchedSince}.`, searchedSince } });
      }
    });
    await goTo(page, 'Usage log');
    await page.getByText('No recent call fits this filter').waitFor();
    await page.getByText(/^Searched back to /).waitFor();
    const goOn = page.getByRole('button', { name: 'Search older calls' });
    await expect.poll(() => goOn.isEnabled()).toBe(true);
    expect(new Set(searches)).toEqual(new Set([6, 5, 4, 3, 2]));
    await goOn.click();
    await expect.poll(() => calls(page).count()).toBeGreaterThan(2);
    expect(searches.at(-1)).toBe(1);
    expect(await page.getByText('were not compared').count()).toBe(0);
    await page.getByLabel('Order').selectOption({ label: 'Most expensive first' });
    await page.getByText('were not compared').waitFor();
    await page.getByLabel('Outcome').selectOption({ label: 'Failed' });
    await page.getByText('More filters').click();
    await page.getByLabel('Min duration, s').fill('3600');
    await page.getByText('No recent call fits this filter').waitFor();
    await page.getByText('were not compared').waitFor();
  });

  test('names keys that were deleted', async () => {
    const { page } = await dashboard.open();
    const secret = await makeKey(page, { name: 'Gone by now' });
    const id = await call(secret, 'demo');
    await page.getByRole('table').getByText('Gone by now').click();
    await page.getByRole('dialog', { name: 'Gone by now' }).getByRole('button', { name: 'Delete' }).click();
    const sure = page.getByRole('dialog', { name: 'Delete Gone by now?' });
    await sure.getByRole('button', { name: 'Delete' }).click();
    await sure.waitFor({ state: 'detached' });
    await recorded(page, id);
    await goTo(page, 'Usage log');
    await calls(page).filter({ hasText: 'Gone by now' }).click();
    const detail = page.getByRole('dialog', { name: 'Call' });
    await detail.getByText('Gone by now (deleted)').waitFor();
    expect(await detail.getByRole('link', { name: 'Gone by now' }).count()).toBe(0);
    await page.keyboard.press('Escape');
    await goTo(page, 'Overview');
    await page.reload();
    await page.getByRole('link', { name: 'Gone by now' }).click();
    await expect.poll(() => page.getByRole('combobox', { name: 'API key' }).inputValue()).toBe('Gone by now');
  });
});

describe.skipIf(skipped !== undefined)(`lists of the dashboard ${skipped ?? ''}`, () => {
  test('API keys are found by name and by the first characters of a secret that is typed whole', async () => {
    const { page } = await dashboard.open();
    const secret = await makeKey(page, { name: 'Needle' });
    const rows = page.getByRole('table', { name: 'API keys' }).locator('tbody tr');
    const box = page.getByLabel('Find an API key');
    await box.fill('NEEDL');
    await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining('Needle')]);
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    await box.fill(secret);
    await expect.poll(() => requested.some((url) => url.includes(`search=${secret.slice(0, 7)}`))).toBe(true);
    await expect.poll(() => rows.filter({ hasText: 'Needle' }).count()).toBe(1);
    expect(requested.join()).not.toContain(secret.slice(0, 9));
    expect(page.url()).not.toContain(secret.slice(0, 9));
    await box.fill('nobody has this');
    await page.getByText('No API key has this').waitFor();
    await page.getByRole('link', { name: 'Show all API keys' }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(1);
  });

  test('a channel counts its attempts and its failures together', async () => {
    const { page } = await dashboard.open();
    const before = await call(key, 'falls-back');
    await recorded(page, before);
    await goTo(page, 'Channels');
    const card = page
      .getByRole('listitem')
      .filter({ has: page.getByRole('heading', { name: 'overloaded', exact: true }) });
    await expect.poll(() => card.innerText()).toMatch(/Attempts, 1 h\s+[1-9]\d*\s+Failed\s+100%/);
    expect(await card.innerText()).toMatch(/Latest failure\s+just now, falls-back: .*overloaded/);
  });

  test('a channel shows the settings that its models refuse', async () => {
    const { page } = await dashboard.open();
    await call(key, 'falls-back', 'Hello', { logit_bias: { 50256: -100 } });
    await goTo(page, 'Channels');
    const card = page
      .getByRole('listitem')
      .filter({ has: page.getByRole('heading', { name: 'slow', exact: true }) });
    await expect
      .poll(() => card.innerText())
      .toMatch(/Learned\s+falls-back refuses logit_bias since just now/);
    expect(await card.innerText()).toContain("traits: { 'falls-back': { refusedMembers: ['logit_bias'] } }");
    expect(await violations(page)).toEqual([]);
  });
});
