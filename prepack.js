// Makes what `npm pack` packs, in dist/: JavaScript with declarations and source maps, the files that code reads beside itself, and the
// page of the dashboard, which with --page-as-it-is is not built anew. With --unchecked the types are written and not checked. In the
// repository nothing of it is used.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const run = (...args) => execFileSync(process.execPath, args, { stdio: 'inherit', cwd: here('.') });

rmSync(here('dist'), { recursive: true, force: true });
if (!process.argv.includes('--page-as-it-is') || !existsSync(here('plugins/dashboard/dist/index.html')))
  run('plugins/dashboard/web/build.js');
const unchecked = process.argv.includes('--unchecked') ? ['--noCheck'] : [];
run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.package.json', ...unchecked);
for (const path of ['core/models/catalogue.json', 'plugins/dashboard/dist'])
  cpSync(here(path), here(`dist/${path}`), { recursive: true });
