import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { packageFolder, version } from '../config/installation/home.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** `sluice init`: a folder with everything that a gateway of one's own begins with. */
export const init: Command = {
  summary: 'Makes a folder with a config, a plugin and a channel to begin with.',
  help: `Usage: sluice init FOLDER

Writes package.json, gateway.config.ts, a plugin in plugins/, a channel in channels/, their tests in test/, and what git and an editor want,
into a new or empty folder. Start the gateway there with "npm start", after "npm install".`,
  async run(args) {
    const { positionals } = readArguments(args, {});
    const [name, ...others] = positionals;
    if (name === undefined || others.length > 0)
      throw new UsageError('One folder is needed: sluice init FOLDER.');
    const folder = resolve(name);
    const present = existsSync(folder) ? readdirSync(folder) : [];
    if (present.length > 0) {
      console.error(
        `${folder} is not empty: it has ${listed(present)}. Name a new folder, or empty this one.`,
      );
      return 1;
    }
    mkdirSync(folder, { recursive: true });
    cpSync(join(packageFolder, 'template'), folder, { recursive: true });
    cpSync(join(packageFolder, '.env.example'), join(folder, '.env.example'));
    for (const [path, text] of Object.entries(written(basename(folder))))
      writeFileSync(join(folder, path), text);
    const isInstalled = aboveOf(folder).some((place) => existsSync(join(place, 'node_modules/.bin/sluice')));
    console.log(`Made ${folder}. Start the gateway with:

  cd ${name}${isInstalled ? '' : '\n  npm install'}
  npm start`);
    return 0;
  },
};

/** The files that differ from folder to folder, and .gitignore, which packages cannot hold. */
function written(name: string): Record<string, string> {
  const manifest = {
    name:
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'my-gateway',
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: { start: 'sluice start', check: 'sluice check', test: 'node --test' },
    dependencies: { sluice: wanted() },
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    '.gitignore': 'node_modules/\ndata/\n.env\n',
    'README.md': `# ${name}

\`npm install && npm start\` starts the gateway, \`npm run check\` says what it runs, or what is wrong.
Providers are switched on by their keys in \`.env\` (see \`.env.example\`) and configured in \`gateway.config.ts\`.
Plugins and channels of your own stand in \`plugins/\` and \`channels/\`, their tests in \`test/\`: \`npm test\` runs them.
`,
  };
}

/** What asks for this very installation: its version, or the place that it came from when that is no registry. */
function wanted(): string {
  const modules = dirname(packageFolder);
  if (basename(modules) !== 'node_modules') return `file:${resolve(packageFolder)}`;
  const lock = join(modules, '.package-lock.json');
  if (!existsSync(lock)) return version;
  const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as {
    packages?: Readonly<Record<string, { readonly resolved?: string } | undefined>>;
  };
  const from = packages?.['node_modules/sluice']?.resolved ?? '';
  if (/^git[+:]/.test(from)) return from;
  return from.startsWith('file:') ? `file:${resolve(dirname(modules), from.slice('file:'.length))}` : version;
}

/** A folder and all that it is in. */
function aboveOf(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...aboveOf(parent)];
}

function listed(names: readonly string[]): string {
  const most = 10;
  const more = names.length > most ? [`${names.length - most} more`] : [];
  return [...names.slice(0, most), ...more].join(', ');
}
