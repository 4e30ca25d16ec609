import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutChromium } from '../support/chromium.ts';
import { goTo, startDashboard, type Dashboard } from './_dashboard.ts';

const skipped = withoutChromium();

let dashboard: Dashboard;

beforeAll(async () => {
  if (skipped === undefined) dashboard = await startDashboard();
});

afterAll(async () => {
  if (skipped === undefined) await dashboard.close();
});

describe.skipIf(skipped !== undefined)(`the dashboard ${skipped ?? ''}`, () => {
  test('reloads the gateway, and shows on every view why a reload failed until one works', async () => {
    const { page, complaints } = await dashboard.open();
    await goTo(page, 'Processes');
    const reload = page.getByRole('button', { name: 'Reload', exact: true });
    await reload.click();
    await page.getByText('Reloaded: new calls are served as the files say now.').waitFor();
    const workers = page.getByRole('table', { name: 'Workers' });
    await workers.getByText('serving').waitFor();

    const { config } = dashboard.gateway;
    const sound = readFileSync(config, 'utf8');
    writeFileSync(config, sound.replace('export default {', 'export default { lisen: 1,'));
    await reload.click();
    const notice = page.getByRole('alert').filter({ hasText: 'what ran before goes on' });
    await notice.waitFor();
    expect(await notice.innerText()).toContain(
      'gateway.config.ts: unknown option "lisen". Check the spelling, or remove it.',
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
