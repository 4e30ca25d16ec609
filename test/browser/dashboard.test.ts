import { readFileSync, writeFileSync } from 'node:fs';
import OpenAI, { APIError } from 'openai';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutChromium } from '../support/chromium.ts';
import { goTo, login, makeKey, password, startDashboard, takePicture, type Dashboard } from './_dashboard.ts';

const skipped = withoutChromium();

let dashboard: Dashboard;

beforeAll(async () => {
  if (skipped === undefined) dashboard = await startDashboard();
});

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

const client = (apiKey: string): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${dashboard.gateway.url}/v1`, maxRetries: 0 });

/** A short answer, or the status and code of the refusal. */
async function sendChat(apiKey: string, model = 'demo', content = 'Hello'): Promise<string> {
  try {
    const answer = await client(apiKey).chat.completions.create({
      model,
      max_completion_tokens: 20,
      messages: [{ role: 'user', content }],
    });
    return answer.choices[0]?.message.content ?? '';
  } catch (error) {
    if (error instanceof APIError) return `${error.status} ${error.code}`;
    throw error;
  }
}

describe.skipIf(skipped !== undefined)(`the dashboard ${skipped ?? ''}`, () => {
  test('from a new key to its end: made, copied, used, spent, seen in the log, revoked', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'API keys');
    await page.getByRole('button', { name: 'Add API key' }).click();
    const form = page.getByRole('dialog', { name: 'Add API key' });
    await form.getByLabel('Name', { exact: true }).fill('Restricted');
    await form.getByLabel('Add a model to the list').selectOption('demo');
    await form.getByRole('button', { name: 'Add a budget' }).click();
    await form.getByLabel('Amount of budget 1').fill('0.10');
    await form.getByLabel('Period of budget 1').selectOption('total');
    await form.getByRole('button', { name: 'Add an end-user budget' }).click();
    await form.getByLabel('Amount of end-user budget').fill('75');
    await form.getByLabel('Period of end-user budget').selectOption('in rolling hours');
    await form.getByLabel('Calls may bring further tags').check();
    await form.getByRole('button', { name: 'Create key' }).click();

    const once = page.getByRole('dialog', { name: 'Copy your API key now' });
    // It says so for some seconds alone: the wait begins before the click.
    const copied = once.getByText('Copied', { exact: true }).waitFor();
    await Promise.all([copied, once.getByRole('button', { name: 'Copy' }).click()]);
    await page.keyboard.press('Escape');
    expect(await once.isVisible()).toBe(true);
    const key = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(key).toMatch(/^sk-[0-9A-Za-z]{48}$/);
    await once.getByRole('button', { name: 'I have copied it' }).click();
    expect(await page.content()).not.toContain(key);

    expect(await sendChat(key)).toContain('Hello');
    expect(await sendChat(key, 'demo-thinking')).toMatch(/^403 /);
    let last = '';
    for (let calls = 0; calls < 40 && !last.startsWith('429'); calls += 1) last = await sendChat(key);
    expect(last).toBe('429 insufficient_quota');

    await goTo(page, 'Usage log');
    await page.getByRole('combobox', { name: 'API key' }).fill('restr');
    await page.getByRole('option', { name: 'Restricted' }).click();
    await page.getByLabel('Outcome').selectOption('ok');
    const row = page.getByRole('table', { name: 'Calls' }).getByRole('row').nth(1);
    await expect.poll(() => row.innerText()).toMatch(/200[\s\S]*Restricted[\s\S]*demo[\s\S]*\$0\.0/);
    await row.click();
    const detail = page.getByRole('dialog', { name: 'Call' });
    await detail.getByText('Price of').waitFor();
    expect(await detail.innerText()).toMatch(/Cost\s+\$0\.0\d+/);
    await detail.getByRole('button', { name: 'Close' }).click();

    await goTo(page, 'API keys');
    await page.getByRole('table').getByText('Restricted').click();
    const sheet = page.getByRole('dialog', { name: 'Restricted', exact: true });
    expect(await sheet.innerText()).toMatch(/further ones[\s\S]*Each end user\s+\$75 per 5 hours/);
    await sheet.getByRole('button', { name: 'Delete' }).click();
    await page
      .getByRole('dialog', { name: 'Delete Restricted?' })
      .getByRole('button', { name: 'Delete' })
      .click();
    await expect.poll(() => sendChat(key), { interval: 50 }).toMatch(/^401 /);
    await expect.poll(() => page.getByRole('table').innerText()).not.toContain('Restricted');
    expect(complaints).toEqual([]);
  });

  test('a login in another window does not take the power to change things from this one', async () => {
    const { page, context } = await dashboard.openAnother();
    const other = await context.newPage();
    await other.goto(`${dashboard.gateway.url}/dashboard/`);
    // By the API: the cookie is replaced in one step, so that this window is at no time without one.
    const status = await other.evaluate(async (secret) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ password: secret });
      return (await fetch('/api/admin/login', { method: 'POST', headers, body })).status;
    }, password);
    expect(status).toBe(200);
    await page.bringToFront();
    expect(await makeKey(page, { name: 'Two windows' })).toMatch(/^sk-/);
  });

  test('a wrong password is refused with a sentence, and an ended session leads back to the login', async () => {
    const { page, context, complaints } = await dashboard.openAnother({ stranger: true });
    await page.getByLabel('Admin password').fill('not the password');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong admin password.').waitFor();
    await login(page);
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await context.clearCookies();
    // By the address: what the overview asks by itself may have led to the login already, where no link is.
    await page.goto(`${dashboard.gateway.url}/dashboard/#/audit`);
    await page.getByLabel('Admin password').waitFor();
    await login(page);
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Admin password').waitFor();
    expect(complaints).toEqual([]);
  });

  test('what the gateway refuses in a form stands beside its field, and what it warns of is shown', async () => {
    const { page } = await dashboard.open();
    await goTo(page, 'API keys');
    await page.getByRole('button', { name: 'Add API key' }).click();
    const form = page.getByRole('dialog', { name: 'Add API key' });
    await form.getByRole('button', { name: 'Create key' }).click();
    await form.getByText('must not be empty').waitFor();
    await form.getByLabel('Name', { exact: true }).fill('Warned');
    await form.getByLabel('Addresses').fill('not-an-address');
    await form.getByRole('button', { name: 'Create key' }).click();
    await form.getByText(/must be an IP address or a range/).waitFor();
    expect(await form.getByLabel('Addresses').getAttribute('aria-invalid')).toBe('true');
    await form.getByLabel('Addresses').fill('');
    await form.getByLabel('Models', { exact: true }).fill('no-such-model-*');
    await form.getByRole('button', { name: 'Create key' }).click();
    const once = page.getByRole('dialog', { name: 'Copy your API key now' });
    expect(await once.innerText()).toContain('no-such-model-*');
    await once.getByRole('button', { name: 'I have copied it' }).click();
  });

  test('a key is edited, disabled, enabled and given a new secret', async () => {
    const { page } = await dashboard.open();
    const first = await makeKey(page, { name: 'Changing' });
    expect(await sendChat(first)).toContain('Hello');
    await page.getByRole('table').getByText('Changing').click();
    const sheet = page.getByRole('dialog', { name: 'Changing', exact: true });
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit Changing' });
    await form.getByLabel('Calls at a time').fill('7');
    await form.getByRole('button', { name: 'Save' }).click();
    await sheet.getByText('7 at a time').waitFor();
    await sheet.getByRole('button', { name: 'Disable' }).click();
    await sheet.getByText('disabled').waitFor();
    expect(await sendChat(first)).toMatch(/^401 /);
    await sheet.getByRole('button', { name: 'Enable' }).click();
    await sheet.getByText('valid').waitFor();
    expect(await sendChat(first)).toContain('Hello');
    await sheet.getByRole('button', { name: 'Rotate' }).click();
    await page
      .getByRole('dialog', { name: /new secret/ })
      .getByRole('button', { name: 'Rotate' })
      .click();
    const once = page.getByRole('dialog', { name: 'Copy your API key now' });
    const second = await once.locator('[data-secret]').innerText();
    await once.getByRole('button', { name: 'I have copied it' }).click();
    expect([await sendChat(first), await sendChat(second)]).toEqual([
      expect.stringMatching(/^401 /),
      expect.stringContaining('Hello'),
    ]);
  });

  test('the playground streams an answer in each of the four formats and shows its wire', async () => {
    const { page, complaints } = await dashboard.open();
    const key = await makeKey(page, { name: 'Playground' });
    await goTo(page, 'Playground');
    await page.getByLabel('API key').fill(key);
    await page.getByLabel('Model', { exact: true }).fill('demo');
    await page.getByLabel('Prompt', { exact: true }).fill('Water under the bridge');
    const marks = [
      ['Chat completions', 'chat.completion.chunk'],
      ['Messages', 'content_block_delta'],
      ['generateContent', 'candidates'],
      ['Responses', 'response.output_text.delta'],
    ] as const;
    for (const [format, mark] of marks) {
      await page.getByRole('button', { name: format, exact: true }).click();
      await page.getByRole('button', { name: 'Request' }).click();
      expect(await page.locator('[data-wire=request]').innerText()).toContain('Water under the bridge');
      await page.getByRole('button', { name: 'Send' }).click();
      const answer = page.locator('[data-answer=done]');
      await expect.poll(() => answer.innerText()).toContain('Water under the bridge');
      await page.getByRole('button', { name: 'Answer', exact: true }).click();
      expect(await page.locator('[data-wire=answer]').innerText()).toContain(mark);
      // The next answer must not be taken for this one.
      await page.getByLabel('Model', { exact: true }).fill('nobody-answers');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.locator('[data-answer=failed]').waitFor();
      await page.getByLabel('Model', { exact: true }).fill('demo');
    }
    expect(await page.evaluate<string>('JSON.stringify([localStorage, sessionStorage])')).not.toContain(key);
    expect(complaints).toEqual([]);
  });

  test('the playground goes on with a conversation in each format, and shows what each call cost', async () => {
    const { page, complaints } = await dashboard.open();
    const key = await makeKey(page, { name: 'Talks' });
    await goTo(page, 'Playground');
    await page.getByLabel('API key').fill(key);
    await page.getByLabel('Model', { exact: true }).fill('demo');
    for (const format of ['Chat completions', 'Messages', 'generateContent', 'Responses']) {
      await page.getByRole('button', { name: format, exact: true }).click();
      await page.getByLabel('Prompt', { exact: true }).fill('Water under the bridge');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.locator('[data-answer=done]').waitFor();
      await expect.poll(() => page.locator('[data-cost]').innerText()).toMatch(/\d+ tokens in, \d+ out, \$/);
      await page.getByRole('button', { name: 'Continue the conversation' }).click();
      await page.getByLabel('Prompt', { exact: true }).fill('And what then?');
      const request = page.locator('[data-wire=request]');
      expect(await request.innerText()).toMatch(
        /Water under the bridge[^]+(assistant|model)[^]+And what then\?/,
      );
      await page.getByRole('button', { name: 'Send' }).click();
      const answer = page.locator('[data-answer=done]');
      await expect.poll(() => answer.innerText()).toContain('And what then?');
      expect(await page.getByLabel('Conversation').getByRole('listitem').count()).toBe(2);
      await page.getByRole('button', { name: 'Start anew' }).click();
      expect(await request.innerText()).not.toContain('Water under the bridge');
    }
    expect(complaints).toEqual([]);
  });

  test('a running call is seen live and stays a while when it has ended', async () => {
    const { page } = await dashboard.open();
    const key = await makeKey(page, { name: 'Watched' });
    await goTo(page, 'Live calls');
    await page.getByText('running').waitFor();
    const answer = sendChat(key, 'held');
    const row = page.getByRole('row', { name: /Watched/ });
    await row.getByText('waiting').waitFor();
    dashboard.release();
    expect(await answer).toBe('fine');
    await row.getByText('200').waitFor();
    // What is opened is its record, which is written a moment later.
    const records = 'fetch("/api/admin/usage?limit=50").then((answer) => answer.text())';
    await expect.poll(() => page.evaluate<string>(records)).toContain('"model":"held"');
    await row.click();
    await page.getByRole('dialog', { name: 'Call' }).getByText('Watched').waitFor();
  });

  test('a channel is tested, switched off and on again', async () => {
    const { page } = await dashboard.open();
    const key = await makeKey(page, { name: 'For channels' });
    await goTo(page, 'Channels');
    const card = (id: string) =>
      page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: id, exact: true }) });
    await card('demo').getByRole('button', { name: 'Test' }).click();
    await card('demo').getByText('It answers.').waitFor();
    await card('broken').getByRole('button', { name: 'Test' }).click();
    await card('broken').getByText('It failed.').waitFor();
    await card('demo').getByRole('button', { name: 'Disable' }).click();
    await page
      .getByRole('dialog', { name: 'Disable demo?' })
      .getByRole('button', { name: 'Disable' })
      .click();
    await card('demo').getByText('disabled').waitFor();
    expect(await sendChat(key)).toMatch(/^503 /);
    await card('demo').getByRole('button', { name: 'Enable' }).click();
    await card('demo').getByText('enabled').waitFor();
    expect(await sendChat(key)).toContain('Hello');
    await goTo(page, 'Audit log');
    const changes = await page.getByRole('table', { name: 'Changes' }).innerText();
    for (const text of ['Channel disabled', 'Channel enabled', 'Channel tested', 'Key created'])
      expect(changes).toContain(text);
  });

  test('everything can be done with the keyboard', async () => {
    const { page } = await dashboard.open();
    const key = await makeKey(page, { name: 'By keyboard' });
    await sendChat(key);
    await goTo(page, 'Usage log');
    const row = page.getByRole('row', { name: /By keyboard/ });
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: 'Refresh' }).click();
        return row.count();
      })
      .toBe(1);
    await row.focus();
    await page.keyboard.press('Enter');
    const detail = page.getByRole('dialog', { name: 'Call' });
    await detail.waitFor();
    for (let presses = 0; presses < 12; presses += 1) {
      await page.keyboard.press('Tab');
      expect(
        await page.evaluate<boolean>(
          'document.activeElement === document.body || !!document.activeElement.closest("dialog")',
        ),
      ).toBe(true);
    }
    await page.keyboard.press('Escape');
    await detail.waitFor({ state: 'detached' });
    await expect.poll(() => page.evaluate<string>('document.activeElement.tagName')).toBe('TR');
  });

  test('a gateway that cannot be reached is named, and comes back by a click', async () => {
    const { page, context } = await dashboard.openAnother();
    await context.setOffline(true);
    await goTo(page, 'Audit log');
    await page.getByText('The gateway cannot be reached.').waitFor();
    await context.setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    expect(await page.getByRole('table', { name: 'Changes' }).innerText()).toContain('Logged in');
  });

  test('models behind a pattern are shown with what they cost, and where that comes from', async () => {
    const { page } = await dashboard.open();
    await goTo(page, 'Models and prices');
    await page.getByLabel('Find a model').fill('gpt-4o-mini');
    const row = page
      .getByRole('row')
      .filter({ has: page.getByRole('link', { name: 'gpt-4o-mini', exact: true }) });
    await row.getByText(/list of 20\d\d-\d\d-\d\d/).waitFor();
    expect(await row.innerText()).toContain('$0.15');
    await page.getByLabel('Find a model').fill('demo');
    await page.getByText('priced as demo*, config').first().waitFor();
    await page.getByLabel('Find a model').fill('nobody-answers');
    await page.getByText('no price').waitFor();
  });

  test('columns sort by a click on their heads', async () => {
    const { page } = await dashboard.open();
    await goTo(page, 'Models and prices');
    const links = page.locator('tbody tr td:first-child a');
    const names = (): Promise<string[]> => links.allInnerTexts();
    await links.first().waitFor();
    const before = await names();
    const head = page.getByRole('columnheader', { name: 'Model' });
    await head.getByRole('button').click();
    expect(await head.getAttribute('aria-sort')).toBe('ascending');
    await head.getByRole('button').click();
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    expect(await names()).toEqual(before.toSorted().toReversed());
    await page.getByLabel('Find a model').fill('thinking');
    await expect.poll(names).toEqual(expect.not.arrayContaining(['demo']));
  });

  test.each(['light', 'dark'] as const)('every view can be read in the %s theme', async (colorScheme) => {
    const { page, complaints } = await dashboard.openAnother({ colorScheme });
    const key = await makeKey(page, {
      name: `Pictures, ${colorScheme}`,
      models: 'demo\nnobody-*',
      dollars: '50',
    });
    await Promise.all([
      sendChat(key),
      sendChat(key, 'demo', '!status=429 Hello'),
      sendChat(key, 'nobody-answers'),
    ]);
    const views = [
      'Overview',
      'Live calls',
      'Usage log',
      'API keys',
      'Channels',
      'Models and prices',
      'Playground',
      'Audit log',
    ];
    for (const title of views) {
      await goTo(page, title);
      await expect.poll(() => page.locator('.spinner').count()).toBe(0);
      if (title === 'Live calls') void sendChat(key, 'demo', '!slow-first=2000 Hello');
      await takePicture(page, `${title.toLowerCase().replaceAll(' ', '-')}-${colorScheme}`);
      expect(await nameless(page)).toEqual([]);
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    }
    await page.getByRole('button', { name: /^Theme/ }).click();
    expect(await page.evaluate<string>('getComputedStyle(document.documentElement).colorScheme')).toBe(
      'light',
    );
    await page.getByRole('button', { name: /^Theme/ }).click();
    expect(await page.evaluate<string>('getComputedStyle(document.documentElement).colorScheme')).toBe(
      'dark',
    );
    expect(complaints).toEqual([]);
  });

  test('on a phone nothing runs out of the page', async () => {
    const { page } = await dashboard.openAnother({ viewport: { width: 390, height: 800 } });
    for (const title of ['Overview', 'Usage log', 'API keys', 'Channels', 'Playground']) {
      await goTo(page, title);
      await expect.poll(() => page.locator('.spinner').count()).toBe(0);
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      await takePicture(page, `${title.toLowerCase().replaceAll(' ', '-')}-phone`);
    }
  });

  test('shows many keys page by page, and also one that stands on none of them', async () => {
    const { page, complaints } = await dashboard.openAnother();
    const ids = await page.evaluate(async () => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      const made: string[] = [];
      for (let index = 0; index < 105; index += 1) {
        const response = await fetch('/api/admin/keys', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-csrf-token': csrfToken },
          body: JSON.stringify({ name: `one of many ${index}` }),
        });
        made.push(((await response.json()) as { key: { id: string } }).key.id);
      }
      return made;
    });
    await goTo(page, 'API keys');
    const rows = page.getByRole('table', { name: 'API keys' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(101);
    await page.evaluate(`location.hash = '#/keys?key=${ids[0]}'`);
    const detail = page.getByRole('dialog', { name: 'one of many 0', exact: true });
    await detail.waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => rows.count()).toBeGreaterThan(105);
    await page.evaluate(async (made) => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      for (const id of made)
        await fetch(`/api/admin/keys/${id}`, { method: 'DELETE', headers: { 'x-csrf-token': csrfToken } });
    }, ids);
    expect(complaints).toEqual([]);
  });

  test('reloads the gateway, and shows on every view why a reload failed until one works', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'Processes');
    const reload = page.getByRole('button', { name: 'Reload', exact: true });
    // It is said for some seconds alone: the wait begins before the click.
    const confirmation = page.getByText('Reloaded: new calls use the changed files.').waitFor();
    await Promise.all([confirmation, reload.click()]);
    const workers = page.getByRole('table', { name: 'Workers' });
    await workers.getByText('serving').waitFor();

    const { config } = dashboard.gateway;
    const sound = readFileSync(config, 'utf8');
    writeFileSync(config, sound.replace('export default {', 'export default { lisen: 1,'));
    await reload.click();
    const notice = page.getByRole('alert').filter({ hasText: 'previous configuration' });
    await notice.waitFor();
    expect(await notice.innerText()).toContain(
      'gateway.config.mjs: unknown option "lisen". Check the spelling, or remove it.',
    );
    await goTo(page, 'Channels');
    await notice.waitFor();

    writeFileSync(config, sound);
    await goTo(page, 'Processes');
    await reload.click();
    await notice.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
  });
});

/** Controls that a screen reader could not name. */
function nameless(page: Page): Promise<string[]> {
  return page.evaluate<
    string[]
  >(`[...document.querySelectorAll('button, a[href], input, select, textarea, dialog, [role=progressbar], [role=img]')]
    .filter((element) => !(element.ariaLabel || element.labels?.length || element.textContent.trim()))
    .map((element) => element.outerHTML)`);
}
