import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stepAt } from '../../core/state/users/totp.ts';
import { withoutChromium } from '../support/chromium.ts';
import { goTo, startDashboard, takePicture, violations, type Dashboard } from './_dashboard.ts';
import { appCode } from './_totp.ts';

const skipped = withoutChromium();

let dashboard: Dashboard;

beforeAll(async () => {
  if (skipped === undefined) dashboard = await startDashboard();
});

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

const password = 'correct horse battery';

describe.skipIf(skipped !== undefined)(`users ${skipped ?? ''}`, () => {
  test('are invited, set a password, sign in with a second factor and see what is theirs', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'Users');
    await page.getByRole('button', { name: 'Invite user' }).first().click();
    const form = page.getByRole('dialog', { name: 'Invite a user' });
    await form.getByRole('button', { name: 'Create invitation' }).click();
    await form.getByText('must not be empty').waitFor();
    await form.getByLabel('Email').fill('Grace@Example.com');
    await form.getByLabel('Name', { exact: true }).fill('Grace Hopper');
    expect(await violations(page)).toEqual([]);
    await form.getByRole('button', { name: 'Create invitation' }).click();
    const once = page.getByRole('dialog', { name: 'Send this link to the user' });
    const link = await once.locator('[data-secret]').innerText();
    await once.getByRole('button', { name: 'I have copied it' }).click();
    const table = page.getByRole('table', { name: 'Users' });
    await expect.poll(() => table.innerText()).toMatch(/grace@example\.com[\s\S]*Member[\s\S]*invited/);
    await takePicture(page, 'users');
    expect(complaints).toEqual([]);

    const { page: hers } = await dashboard.openAnother({ stranger: true });
    await hers.goto(link);
    await hers.getByLabel('New password').fill('short');
    await hers.getByLabel('The same again').fill('other');
    await hers.getByRole('button', { name: 'Set password' }).click();
    await hers.getByText('The two passwords differ.').waitFor();
    await hers.getByLabel('The same again').fill('short');
    await hers.getByRole('button', { name: 'Set password' }).click();
    await hers.getByText('12 to 1024 characters').waitFor();
    await hers.getByLabel('New password').fill(password);
    await hers.getByLabel('The same again').fill(password);
    expect(await violations(hers)).toEqual([]);
    await hers.getByRole('button', { name: 'Set password' }).click();
    await hers.getByRole('link', { name: 'Log in' }).click();
    await hers.reload();
    await hers.getByLabel('Email').fill('grace@example.com');
    await hers.getByLabel('Password', { exact: true }).fill('not this one at all');
    await hers.getByRole('button', { name: 'Log in' }).click();
    await hers.getByText('Wrong email or password.').waitFor();
    await hers.getByLabel('Password', { exact: true }).fill(password);
    await hers.getByRole('button', { name: 'Log in' }).click();
    const views = hers.getByRole('navigation', { name: 'Views' });
    await views.waitFor();
    expect((await views.getByRole('link').allInnerTexts()).map((text) => text.trim())).toEqual([
      'Overview',
      'Live calls',
      'Spend',
      'Usage log',
      'API keys',
      'Organisations and teams',
      'Models and prices',
      'Playground',
    ]);

    const secret = await hers.evaluate(async () => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      const answer = await fetch('/api/admin/me/second-factor', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-csrf-token': csrfToken },
        body: '{}',
      });
      return ((await answer.json()) as { secret: string }).secret;
    });
    const code = (step: number): string => appCode(secret, step);
    // Each code is of the moment in which it is sent, but for the one that was used: that is the last one.
    const first = stepAt(Date.now());
    await hers.evaluate(async (given) => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      await fetch('/api/admin/me/second-factor/confirm', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-csrf-token': csrfToken },
        body: JSON.stringify({ code: given }),
      });
    }, code(first));
    await hers.getByRole('button', { name: 'Log out' }).click();
    await hers.getByLabel('Email').fill('grace@example.com');
    await hers.getByLabel('Password', { exact: true }).fill(password);
    await hers.getByRole('button', { name: 'Log in' }).click();
    await hers.getByLabel('Code', { exact: true }).fill(code(first));
    await hers.getByRole('button', { name: 'Log in' }).click();
    await hers.getByText('was used already').waitFor();
    await hers.getByLabel('Code', { exact: true }).fill(code(Math.max(first + 1, stepAt(Date.now()))));
    await hers.getByRole('button', { name: 'Log in' }).click();
    await views.waitFor();

    await table.getByText('grace@example.com').click();
    const sheet = page.getByRole('dialog', { name: 'grace@example.com', exact: true });
    expect(await violations(page)).toEqual([]);
    expect(await sheet.innerText()).toMatch(/Role\s+Member/);
    // A name that is emptied gives way to the email.
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit grace@example.com' });
    await edit.getByLabel('Name', { exact: true }).fill('');
    await edit.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => table.innerText()).not.toContain('Grace Hopper');
    await sheet.getByRole('button', { name: 'Disable' }).click();
    await page
      .getByRole('dialog', { name: 'Disable grace@example.com?' })
      .getByRole('button', { name: 'Disable' })
      .click();
    await expect.poll(() => table.innerText()).toContain('disabled');
    await hers.reload();
    await hers.getByRole('button', { name: 'Log in' }).waitFor();
  });

  test('who edits a user that somebody else has changed meanwhile is told', async () => {
    const { page, complaints } = await dashboard.open();
    const { id, invitation } = await page.evaluate(async () => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      const answer = await fetch('/api/admin/users', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-csrf-token': csrfToken },
        body: '{"email":"ada@example.com"}',
      });
      const made = (await answer.json()) as { user: { id: string }; invitation: { token: string } };
      return { id: made.user.id, invitation: made.invitation.token };
    });
    await goTo(page, 'Users');
    await page.getByRole('table', { name: 'Users' }).getByText('ada@example.com').click();
    const sheet = page.getByRole('dialog', { name: 'ada@example.com', exact: true });
    await sheet.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit ada@example.com' });
    // That she sets a password meanwhile is no change of what is edited.
    await page.evaluate(
      async (body) => {
        const headers = { 'content-type': 'application/json' };
        await fetch('/api/admin/invitation', { method: 'POST', headers, body });
      },
      JSON.stringify({ token: invitation, password }),
    );
    await edit.getByLabel('Name', { exact: true }).fill('Ada Lovelace');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await sheet.getByRole('button', { name: 'Edit' }).click();
    await edit.getByRole('button', { name: 'Auditor' }).click();
    await page.evaluate(async (user) => {
      const { csrfToken } = (await (await fetch('/api/admin/session')).json()) as { csrfToken: string };
      await fetch(`/api/admin/users/${user}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json', 'x-csrf-token': csrfToken },
        body: '{"name":"Ada"}',
      });
    }, id);
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit
      .getByRole('alert')
      .getByText(/changed/i)
      .waitFor();
    expect(complaints).toEqual([]);
  });
});
