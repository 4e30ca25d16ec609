import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe, { type AxeResults } from 'axe-core';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { startProcess, type GatewayProcess } from '../flows/_process.ts';
import { wholeReplies } from '../flows/_wire.ts';
import { startChromium } from '../support/chromium.ts';
import { patience } from '../support/patience.ts';
import { everything } from '../support/tries.ts';
import { startUpstream } from '../support/upstream.ts';
import { builtPage } from './_page.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folder in which `npm run fuzz` saves screenshots. Git ignores it. */
const pictures = process.env['SLUICE_PICTURES'] ?? join(root, 'data/screenshots');

/** The password of the gateways here. */
export const password = 'a long admin password';

/** A gateway with the page as it is in the source now, and a browser. */
export interface Dashboard {
  readonly gateway: RunningGateway;
  /** Address of the provider. */
  readonly upstream: string;
  /** A window that is logged in, on a page that has just been loaded: the same one for all tests, of which a browser makes none cheaply. */
  open(): Promise<Window>;
  /** A window of its own, of this gateway and logged in unless said otherwise; closed after the test. */
  openAnother(
    options?: BrowserContextOptions & { readonly stranger?: boolean; readonly gateway?: string },
  ): Promise<Window>;
  /** Lets the provider of the model `held` answer, which until then says nothing. */
  release(): void;
  close(): Promise<void>;
}

/** A page, and everything it did that it should not do: errors, refused resources, requests to other hosts. */
export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: string[];
}

/** Returns the entry of the page in a config. */
export const pagePlugin = (outDir: string): string =>
  `(await import('${root}plugins/dashboard/index.ts')).default({ folder: '${outDir}' })`;

/** The entry of the demo channel in a config. */
export const demoChannel = `(await import('${root}channels/demo/index.ts')).default()`;

/** A gateway that serves the page. */
export type RunningGateway = Pick<GatewayProcess, 'url' | 'key' | 'config' | 'end'>;

/** Starts a gateway whose page is in a folder. */
export type StartGateway = (outDir: string, upstream: string) => Promise<RunningGateway>;

const startUsual: StartGateway = (outDir, upstream) =>
  startProcess(`
    database: 'sqlite:./sluice.db',
    adminPassword: '${password}',
    prices: { 'demo*': { input: 500, output: 1000 } },
    plugins: [${pagePlugin(outDir)}],
    channels: [
      ${demoChannel},
      openai({ id: 'broken', key: 'sk-none', baseUrl: 'http://127.0.0.1:9', models: ['nobody-answers', 'gpt-4o*'] }),
      openai({ id: 'slow', key: 'sk-none', baseUrl: '${upstream}/v1', models: ['held', 'falls-back'] }),
      openai({ id: 'overloaded', key: 'sk-none', baseUrl: '${upstream}/overloaded/v1', models: ['falls-back'], priority: 1 }),
    ],
  `);

/**
 * Builds the page where its source has changed, and starts a browser and a gateway: in a process of its own with a database in a file, unless
 * `start` says otherwise.
 */
export async function startDashboard(start: StartGateway = startUsual): Promise<Dashboard> {
  const outDir = await builtPage();
  const held: (() => void)[] = [];
  const upstream = await startUpstream(({ url: path, body }, response) => {
    const answer = (status: number, reply: unknown): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
    // The words and the status are OpenAI's: https://platform.openai.com/docs/guides/error-codes.
    const overloaded = {
      message: 'The engine is currently overloaded.',
      type: 'server_error',
      param: null,
      code: null,
    };
    const unsupported = {
      message: "Unsupported parameter: 'logit_bias' is not supported with this model.",
      type: 'invalid_request_error',
      param: 'logit_bias',
      code: 'unsupported_parameter',
    };
    if (path.startsWith('/overloaded')) answer(503, { error: overloaded });
    else if (body.includes('"logit_bias"')) answer(400, { error: unsupported });
    else if (body.includes('"falls-back"')) answer(200, wholeReplies['chat-completions']);
    else held.push(() => answer(200, wholeReplies['chat-completions']));
  });
  const [gateway, browser]: [RunningGateway, Browser] = await Promise.all([
    start(outDir, upstream.url),
    startChromium(),
  ]);
  const url = `${gateway.url}/dashboard/`;
  let usual: Window | undefined;
  let loads = 0;
  return {
    gateway,
    upstream: upstream.url,
    async open() {
      usual ??= await begin(browser, url);
      const { page, complaints } = usual;
      complaints.length = 0;
      // Another address, so that the page is loaded anew and nothing is left of what it held before. It is of the same host, whose pages
      // the browser shows in one process: a detour by an empty page would start two others each time.
      await page.goto(`${url}?${(loads += 1)}`);
      await page.getByRole('navigation', { name: 'Views' }).waitFor();
      return usual;
    },
    async openAnother({ gateway: other, ...options } = {}) {
      const window = await begin(browser, other === undefined ? url : `${other}/dashboard/`, options);
      onTestFinished(() => window.context.close());
      return window;
    },
    release() {
      for (const answer of held.splice(0)) answer();
    },
    async close() {
      await browser.close();
      await gateway.end();
      await upstream.close();
    },
  };
}

/** Makes a window, with the page of the login, or logged in. */
async function begin(
  browser: Browser,
  url: string,
  { stranger = false, ...options }: BrowserContextOptions & { readonly stranger?: boolean } = {},
): Promise<Window> {
  const context = await browser.newContext({
    viewport: { width: 1360, height: 850 },
    // What moves without end is drawn without end.
    reducedMotion: 'reduce',
    ...options,
  });
  const { origin } = new URL(url);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const page = await context.newPage();
  page.setDefaultTimeout(patience.wait);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The browser itself reports refusals of the API, which tests ask for.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:'))
      complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(url);
  if (!stranger) await login(page);
  return { context, page, complaints };
}

/** Types the password. */
export async function login(page: Page): Promise<void> {
  await page.getByLabel('Admin password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
}

/** Goes to a view by the rail. */
export async function goTo(page: Page, title: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: title }).click();
  await page.getByRole('heading', { level: 1, name: title }).waitFor();
}

/** Makes a key by the dialog and returns its secret. */
export async function makeKey(
  page: Page,
  fields: { readonly name: string; readonly models?: string; readonly dollars?: string },
): Promise<string> {
  await goTo(page, 'API keys');
  await page.getByRole('button', { name: 'Add API key' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add API key' });
  await dialog.getByLabel('Name', { exact: true }).fill(fields.name);
  if (fields.models !== undefined) await dialog.getByLabel('Models', { exact: true }).fill(fields.models);
  if (fields.dollars !== undefined) {
    await dialog.getByRole('button', { name: 'Add a budget' }).click();
    await dialog.getByLabel('Amount of budget 1').fill(fields.dollars);
    await dialog.getByLabel('Period of budget 1').selectOption('total');
  }
  await dialog.getByRole('button', { name: 'Create key' }).click();
  const once = page.getByRole('dialog', { name: 'Copy your API key now' });
  const secret = await once.locator('[data-secret]').innerText();
  await once.getByRole('button', { name: 'I have copied it' }).click();
  await once.waitFor({ state: 'detached' });
  return secret;
}

/** True where people look at the pictures: with `npm run fuzz`, or where they ask for them. */
const isLookedAt = everything || process.env['SLUICE_PICTURES'] !== undefined;

/** Themes and widths in which views are tried. Two of the four show what is wrong with colours, and with widths. */
export const looks = (['light', 'dark'] as const)
  .flatMap((colorScheme) => [1280, 390].map((width) => ({ colorScheme, width })))
  .filter(({ colorScheme, width }) => isLookedAt || (colorScheme === 'light') === (width === 1280));

/** Takes a picture where pictures are wanted, once what moves has come to rest. */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (!isLookedAt) return;
  await page.waitForTimeout(400);
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Rules of accessibility that the page breaks, with the elements. */
export async function violations(page: Page): Promise<string[]> {
  // Half a megabyte, which stays as long as the page is not loaded anew.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<AxeResults>('axe.run({ resultTypes: ["violations"] })');
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}
