import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { entityNames } from '../../../plugins/guard/detectors/index.ts';
import { guardOptions } from '../../../plugins/guard/options.ts';
import guard from '../../../plugins/guard/index.ts';
import { startGatewayIn } from '../../core/cli/_process.ts';
import { testPlugins } from 'sluice/testing';
import { operatorFolder } from '../../support/operator-folder.ts';

const page = readFileSync(new URL('../../../docs/guides/guard.md', import.meta.url), 'utf8');

test('the config on the page starts a gateway that does what the page says', async () => {
  const [, config = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const local = config
    .replace("'sluice/channels/demo'", "'../../../channels/demo/index.ts'")
    .replace("'sluice/plugins/guard'", "'../../../plugins/guard/index.ts'");
  const gateway = await startGatewayIn(operatorFolder({ 'gateway.config.ts': local }));
  const sendChat = async (content: string): Promise<{ readonly status: number; readonly body: string }> => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content }] }),
    });
    return { status: answer.status, body: await answer.text() };
  };
  expect((await sendChat('I am ada@example.org')).body).toContain('You said: I am ada@example.org');
  expect((await sendChat(`My key is sk-ant-${'x'.repeat(40)}`)).status).toBe(400);
  expect((await sendChat('About Moonshine')).status).toBe(200);
  await gateway.wrote(/"check":"projects".*guard: alert/);
});

test('the checks on the page are options that are taken', async () => {
  const shown = [...page.matchAll(/`(\{ kind: '.*? \})`/g)].map(([, text = '']) => text);
  expect(shown.length).toBeGreaterThan(4);
  for (const text of shown) {
    const code = text.replace('[…]', "['all']").replace('{…}', "{ type: 'object' }");
    // What the page shows is code of ours.
    // oxlint-disable-next-line no-implied-eval
    const check = new Function(`return (${code})`)() as object;
    const options = { checks: [{ name: 'shown', action: 'refuse', ...check }] };
    expect(guardOptions.safeParse(options).error).toBeUndefined();
    const tested = await testPlugins(guard(options as Parameters<typeof guard>[0]));
    onTestFinished(() => tested.close());
  }
});

test('the page names every kind and every entity', () => {
  for (const name of entityNames) expect(page).toContain(`\`${name}\``);
  const kinds = guardOptions.shape.checks.def.innerType.element.options.map(({ shape }) => shape.kind.value);
  expect(kinds.length).toBe(12);
  for (const kind of kinds) expect(page).toMatch(new RegExp(`kind: '${kind}'|\`${kind}\``));
});
