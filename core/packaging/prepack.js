// Makes what `npm pack` packs, in dist/: JavaScript with declarations and source maps, the files that code reads beside itself, and the
// page of the dashboard, which with --page-as-it-is is not built anew. With --unchecked the types are written and not checked, on
// one core, which takes half of the CPU. In the repository nothing of it is used.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, new URL('../../', import.meta.url)));

// A step that fails has said why: a stack trace of this script would hide it.
const run = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', cwd: here('.') });
  if (status !== 0) process.exit(status ?? 1);
};

if (!['vite', 'typescript'].every((name) => existsSync(here(`node_modules/${name}`)))) {
  console.error(
    'The package cannot be built: vite and typescript are not installed. Run "npm ci", then "npm pack".',
  );
  process.exit(1);
}
rmSync(here('dist'), { recursive: true, force: true });
if (!process.argv.includes('--page-as-it-is') || !existsSync(here('plugins/dashboard/dist/index.html')))
  run('plugins/dashboard/web/build.js');
const unchecked = process.argv.includes('--unchecked') ? ['--noCheck', '--singleThreaded'] : [];
run('node_modules/typescript/bin/tsc', '-p', 'core/packaging/tsconfig.json', ...unchecked);
for (const path of [
  'core/models/catalogue.json',
  'core/models/corrections.json',
  'core/models/services.json',
  'plugins/dashboard/dist',
])
  cpSync(here(path), here(`dist/${path}`), { recursive: true });
