import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Cloud packages and channel files that a gateway has loaded. */
interface Loaded {
  readonly packages: readonly string[];
  readonly kinds: readonly string[];
}

/** Starts a gateway in a process of its own, lets it answer, and lists what was loaded by then. */
function loadedBy(channels: string): Loaded {
  const program = `
    import { createRequire, registerHooks } from 'node:module';
    const kinds = [];
    registerHooks({
      load(url, context, nextLoad) {
        const [, kind] = /\\/channels\\/([a-z][^/]*)/.exec(url) ?? [];
        if (kind !== undefined) kinds.push(kind);
        return nextLoad(url, context);
      },
    });
    const { startGateway } = await import('./test/support/gateway.ts');
    const { default: demo } = await import('./channels/demo/index.ts');
    const { default: bedrock } = await import('./channels/bedrock/index.ts');
    const gateway = await startGateway({ channels: ${channels} });
    const headers = { authorization: 'Bearer ' + gateway.key, 'content-type': 'application/json' };
    const ask = (path, body) => fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) }).then((reply) => reply.text());
    const messages = [{ role: 'user', content: 'Hi' }];
    await ask('/v1/chat/completions', { model: 'demo', messages, stream: true });
    await ask('/v1/chat/completions', { model: 'meta.llama', messages });
    await gateway.close();
    const loaded = Object.keys(createRequire(process.cwd() + '/x.js').cache);
    const packages = loaded.flatMap((file) => /node_modules\\/(@aws-sdk|@smithy)\\/([^/]+)/.exec(file)?.slice(1, 3).join('/') ?? []);
    console.log(JSON.stringify({ packages: [...new Set(packages)], kinds: [...new Set(kinds)] }));
  `;
  const output = execFileSync(
    process.execPath,
    ['--conditions=sluice-source', '--input-type=module', '-e', program],
    { cwd: root, encoding: 'utf8' },
  );
  return JSON.parse(output.trim().split('\n').at(-1) ?? '') as Loaded;
}

test('without a cloud in the config, none of their packages is loaded, nor a channel kind that nobody imports', () => {
  const { packages, kinds } = loadedBy('[demo()]');
  expect(packages).toEqual([]);
  // The program above imports two, and one of these a third.
  expect(kinds.toSorted()).toEqual(['anthropic.ts', 'bedrock', 'demo']);
});

test('a key of its own needs no chain; what signs is loaded by the first call', () => {
  const endpoint = "region: 'us-east-1', baseUrl: 'http://127.0.0.1:9'";
  const signed = loadedBy(`[demo(), bedrock({ ${endpoint}, key: 'AKID|secret' })]`).packages;
  expect(signed).toContain('@smithy/signature-v4');
  expect(signed).not.toContain('@aws-sdk/credential-providers');
  expect(loadedBy(`[demo(), bedrock({ ${endpoint}, key: 'api-key' })]`).packages).toEqual([]);
});
