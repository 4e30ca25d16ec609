import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { packageFolder, version } from '../config/installation/home.ts';
import { env } from '../settings/environment.ts';
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
    copyFolder(join(packageFolder, 'docs/template'), folder);
    copyFileSync(join(packageFolder, '.env.example'), join(folder, '.env.example'));
    for (const [path, text] of Object.entries(written(basename(folder))))
      writeFileSync(join(folder, path), text);
    const { install, start } = commandsOf(env('npm_config_user_agent', ''));
    console.log(`Made ${folder}. Start the gateway with:

  cd ${name}
  ${install}
  ${start}`);
    return 0;
  },
};

/** Copies a folder. `cpSync` of Node cannot read the archives in which Yarn keeps packages. */
function copyFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyFolder(source, target);
    else copyFileSync(source, target);
  }
}

/** Returns the commands of the package manager that runs this program, by its `npm_config_user_agent`. */
function commandsOf(agent: string): { readonly install: string; readonly start: string } {
  if (agent.startsWith('pnpm/')) return { install: 'pnpm install', start: 'pnpm start' };
  // Without a lock file of its own, Yarn takes the folder for a part of the project around it.
  if (agent.startsWith('yarn/')) return { install: 'touch yarn.lock && yarn install', start: 'yarn start' };
  return { install: 'npm install', start: 'npm start' };
}

/** Returns the files that differ from folder to folder, and .gitignore, which packages cannot hold. */
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
    scripts: { start: 'sluice start', check: 'sluice check', test: 'node --test', types: 'tsc' },
    // The versions of Sluice itself, so that package managers install one copy of each for both.
    dependencies: { sluice: sluiceRange(), ...versionsOf('dependencies', ['rxjs', 'zod']) },
    devDependencies: versionsOf('devDependencies', ['@types/node', 'typescript']),
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    '.gitignore': 'node_modules/\ndata/\n.env\n',
    'README.md': `# ${name}

\`npm install && npm start\` starts the gateway, \`npm run check\` says what it runs, or what is wrong.
Providers are switched on by their keys in \`.env\` (see \`.env.example\`) and configured in \`gateway.config.ts\`.
Plugins and channels of your own stand in \`plugins/\` and \`channels/\`, their tests in \`test/\`: \`npm test\` runs them, \`npm run types\` checks their types.
`,
  };
}

/** Returns the versions of packages that Sluice's own package.json names. */
function versionsOf(
  section: 'dependencies' | 'devDependencies',
  names: readonly string[],
): Record<string, string> {
  const versions = manifestIn(packageFolder)?.[section] ?? {};
  return Object.fromEntries(names.map((name) => [name, versions[name] ?? '*']));
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function manifestIn(folder: string): Manifest | undefined {
  const path = join(folder, 'package.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Manifest) : undefined;
}

/**
 * Returns what a package.json asks for to get this installation: what the project asks for in whose folder `init` runs, or, without one,
 * this version. A path is made absolute, because the new project stands in another folder.
 */
function sluiceRange(): string {
  if (basename(dirname(packageFolder)) !== 'node_modules') return `file:${resolve(packageFolder)}`;
  for (const folder of aboveOf(process.cwd())) {
    const { dependencies, devDependencies } = manifestIn(folder) ?? {};
    const range = dependencies?.['sluice'] ?? devDependencies?.['sluice'];
    const [, path] = /^(?:file|link|portal):([^#]+?)(?:[#:].*)?$/.exec(range ?? '') ?? [];
    if (path !== undefined) return `file:${resolve(folder, path)}`;
    if (range !== undefined) return range;
  }
  return version;
}

/** Returns a folder and all folders around it, the innermost first. */
function aboveOf(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...aboveOf(parent)];
}

function listed(names: readonly string[]): string {
  const most = 10;
  const more = names.length > most ? [`${names.length - most} more`] : [];
  return [...names.slice(0, most), ...more].join(', ');
}
