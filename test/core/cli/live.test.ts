import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { formatVoice, reply, startUpstream, toolCall, type Script } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { respondWith, scriptFor } from '../../../core/sdk/testing/accepting-provider.ts';
import type { ReceivedRequest } from '../../../core/sdk/testing/voice.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from './_process.ts';
import { shell } from './_shell.ts';

const sluiceInShell = shell();

/** A provider that speaks chat completions: what it says, and to which key. */
async function provider(says: (request: ReceivedRequest) => Script, key?: string): Promise<string> {
  const voice = await formatVoice('chat-completions');
  const { url, close } = await startUpstream((request, response) => {
    if (key === undefined || request.headers.authorization === `Bearer ${key}`)
      respondWith(voice, request, response, says);
    else
      response.writeHead(401, { 'content-type': 'application/json' }).end(voice.error(401, 'Who are you?'));
  });
  onTestFinished(close);
  return url;
}

function config(channels: string): string {
  const folder = operatorFolder({
    'gateway.config.ts': `
      import { defineConfig } from 'sluice';
      import anthropic from 'sluice/channels/anthropic';
      import openaiCompatible from 'sluice/channels/openai-compatible';
      export default defineConfig({ channels: [${channels}] });`,
  });
  return join(folder, 'gateway.config.ts');
}

const channel = (name: string, url: string, key = 'sk-own'): string =>
  `openaiCompatible({ name: '${name}', baseUrl: '${url}/v1', key: '${key}', models: ['test-model'] })`;

const checking = (file: string, ...args: string[]): string[] => [
  'check',
  '--live',
  '--config',
  file,
  ...args,
];
const check = (file: string, ...args: string[]) => sluiceInShell(checking(file, ...args));

/** Returns the result of each trial by name. */
function findings(stdout: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...stdout.matchAll(/^ {2}(\S.*?) {2,}(holds|differs|refused)\b(.*)$/gm)].map(
      ([, name = '', result = '', remark = '']) => [name, `${result}${remark.replace(/^ +/, ' ')}`],
    ),
  );
}

describe('an operator who asks what a provider does', () => {
  test('reads the cost first, and that nothing was asked without a yes', async () => {
    const file = config(channel('mine', 'http://127.0.0.1:1'));
    const { code, stdout } = await check(file);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^mine: 23 requests to test-model, with at most \d+ input and \d+ output tokens, unknown cost\.$/m,
    );
    expect(stdout).toContain(
      'Sent nothing, because there is no terminal to confirm it. To go on without confirmation use --yes.',
    );
  });

  test('reads that all holds of one that does all', async () => {
    const file = config(channel('mine', await provider(scriptFor, 'sk-own')));
    const { code, stdout, stderr } = await sluice(checking(file, '--yes'));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const found = findings(stdout);
    expect(Object.keys(found)).toContain('a wrong key');
    expect(Object.keys(found).length).toBe(23);
    expect(Object.entries(found).filter(([, result]) => result !== 'holds')).toEqual([]);
    expect(stdout).not.toContain('sk-own');
  });

  test('reads of each thing that differs or is refused what it is, and of the others that they hold', async () => {
    const says = (request: ReceivedRequest): Script => {
      const { tools, settings } = request.request;
      if (settings.responseFormat !== undefined) return reply('The city is Oslo.');
      if (tools.length > 0) return reply(toolCall('weather', { city: 'Oslo' }));
      const script = scriptFor(request);
      return script.map((step) =>
        'type' in step && step.type === 'usage'
          ? { ...step, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 } }
          : step,
      );
    };
    const file = config(channel('lazy', await provider(says)));
    const { code, stdout } = await check(file, '--yes');
    expect(code).toBe(0);
    expect(findings(stdout)).toMatchObject({
      text: 'holds',
      tools: 'holds',
      'parallel tools': 'differs the weather of Rome was not asked for, but of: Oslo',
      'structured output': 'differs the answer is no JSON: The city is Oslo.',
      'prompt cache': 'differs the same prompt again was not read from a cache',
      'a wrong key': 'differs the provider accepts any key',
    });
  });

  test('learns by the exit code that a provider does not answer at all', async () => {
    const dead: Server = createServer((_request, response) => response.writeHead(500).end('{}'));
    await new Promise<void>((done) => dead.listen(0, '127.0.0.1', done));
    onTestFinished(() => void dead.close());
    const { port } = dead.address() as AddressInfo;
    const { code, stdout } = await check(config(channel('dead', `http://127.0.0.1:${port}`)), '--yes');
    expect(code).toBe(1);
    expect(findings(stdout)['text']).toMatch(/^refused 50\d: /);
  });

  test('chooses a channel and models', async () => {
    const url = await provider(scriptFor);
    const file = config(
      `${channel('one', url)}, ${channel('two', 'http://127.0.0.1:1')}, anthropic({ key: 'sk-own' })`,
    );
    const { code, stdout } = await check(file, 'one', '--model', 'test-model', '--yes');
    expect(code).toBe(0);
    expect(stdout).not.toContain('two');
    const priced = await check(file, 'anthropic', '--model', 'claude-haiku-4-5');
    expect(priced.stdout).toMatch(/^anthropic: \d+ requests to claude-haiku-4-5, .*, at most \$0\.\d{4}\.$/m);
    expect(await check(file, 'three')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'Unknown channel "three". The config has: one, two, anthropic.',
      ) as string,
    });
  });
});
