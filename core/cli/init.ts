import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { packageFolder, version } from '../config/installation/home.ts';
import { env } from '../settings/environment.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** `sluice init`: creates a project folder for a gateway. */
export const init: Command = {
  summary: 'Creates a project with a config, an example plugin and an example channel.',
  help: `Usage: sluice init FOLDER

Creates a project in a new or empty folder: package.json, gateway.config.ts, .gitignore, tsconfig.json, an example plugin in plugins/,
an example channel in channels/, and their tests in test/. To start its gateway, run "npm install" and "npm start" in the folder.`,
  async run(args) {
    const { positionals } = readArguments(args, {});
    const [name, ...others] = positionals;
    if (name === undefined || others.length > 0) throw new UsageError('Name one folder: sluice init FOLDER.');
    const folder = resolve(name);
    const present = existsSync(folder) ? readdirSync(folder) : [];
    if (present.length > 0) {
      console.error(
        `${folder} is not empty. It contains: ${listed(present)}. Name a new folder, or empty this one.`,
      );
      return 1;
    }
    mkdirSync(folder, { recursive: true });
    copyFolder(join(packageFolder, 'docs/template'), folder);
    copyFileSync(join(packageFolder, '.env.example'), join(folder, '.env.example'));
    for (const [path, text] of Object.entries(written(basename(folder))))
      writeFileSync(join(folder, path), text);
    const { install, start } = commandsOf(env('npm_config_user_agent', ''));
    console.log(`Created ${folder}. Start the gateway with:

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
  // Without its own lock file, Yarn treats the folder as part of the project around it.
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

\`npm install && npm start\` starts the gateway, \`npm run check\` checks the config.
A provider is enabled by its key in \`.env\` (see \`.env.example\`) and configured in \`gateway.config.ts\`.
Your plugins and channels are in \`plugins/\` and \`channels/\`, with their tests in \`test/\`. \`npm test\` runs the tests, and \`npm run types\` checks the types.
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
 * Returns the version range of Sluice for the new package.json: that of the project in which `init` runs, else this version. Makes a path
 * absolute, because the new project is in another folder.
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
