#!/usr/bin/env node
// Plain JavaScript for any Node from 20 on: finds a Node that runs TypeScript, and runs the command line in it. In the repository that
// is the TypeScript beside this file, in the package what is compiled from it.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const source = new URL('main.ts', import.meta.url);
const isRepository = existsSync(source);
const main = isRepository ? source : new URL('../../dist/core/cli/main.js', import.meta.url);
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > 22 || (major === 22 && minor >= 18)) {
  // What has been compiled is kept for the next start, which then takes half of the CPU. From here on, so that nothing at all is left to
  // the compiler of TypeScript, which alone takes 16 MB. In a folder of this installation, not in one that every user of the machine can
  // write to. Where nothing can be written all is as before.
  const { enableCompileCache } = await import('node:module');
  enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/sluice', import.meta.url)));
  await import(main.href);
} else {
  // The npm package "node", a development dependency, brings the program that the tests ran on.
  const own = ['bin/node', 'bin/node.exe']
    .map((path) => fileURLToPath(new URL(`../../node_modules/node/${path}`, import.meta.url)))
    .find((path) => existsSync(path));
  if (own === undefined) {
    console.error(
      `Sluice needs Node 22.18 or newer, and this is ${process.versions.node}. Install one${isRepository ? ', or run "npm ci" in the folder of Sluice' : ''}.`,
    );
    process.exit(1);
  }
  const child = spawn(own, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(error.message);
    process.exit(1);
  });
  child.on('exit', (code, signal) =>
    process.exit(code ?? 128 + (constants.signals[signal ?? 'SIGTERM'] ?? 15)),
  );
}
