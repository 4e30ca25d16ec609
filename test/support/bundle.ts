import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown, type Plugin } from 'rolldown';
import { compiled } from './compiled.ts';
import { passwordHashFile, withCheapPasswords } from './password-cost.ts';
import { bundleVariable } from './program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cache = join(root, 'node_modules/.cache/sluice-bundle');

/** Packages in the bundle: those that every gateway loads, as ES modules or CommonJS of a plain kind. Node loads the others itself. */
const packages = /^(?:rxjs|zod|koa|ws|pino|prom-client|keyv|tiny-typed-emitter)(?:\/|$)/;

/** Packages in the bundle that files of operators import too: they get the same classes. */
const shared = ['rxjs', 'zod'];

/**
 * Modules that others load by a computed address, each its own entry of the bundle: commands and workers, what authors import, all
 * plugins, channels and formats.
 */
function entries(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | Record<string, string>>;
  };
  const exported = Object.values(exports)
    .map((target) => (typeof target === 'string' ? '' : (target['sluice-source'] ?? '')))
    .filter((target) => target !== '' && !target.includes('*'));
  const found = globSync('{core/formats/[!_]*/index,{plugins,channels}/{[!_]*,[!_]*/index}}.ts', {
    cwd: root,
  });
  const all = ['core/cli/main.ts', 'core/cli/worker.ts', ...exported, ...found];
  return [...new Set(all.map((path) => join(root, path)))];
}

/** Digest of everything that the bundle is made of, by names, sizes and times. */
function digestOfSources(): string {
  const hash = createHash('sha256').update(process.version);
  const files = globSync('{core,plugins,channels}/**/*.ts', { cwd: root }).toSorted();
  const makers = [import.meta.filename, join(import.meta.dirname, 'password-cost.ts')];
  for (const path of [...files, 'package-lock.json', ...makers.map((maker) => relative(root, maker))]) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * Bundles the gateway, so that processes that tests start load six files instead of 1,800: a start takes a third less CPU (measured in
 * November 2026). A bundle of the same sources is used again.
 */
export async function prepareBundle(): Promise<void> {
  const folder = join(cache, digestOfSources());
  if (!existsSync(folder)) {
    removeOldBundles();
    const made = `${folder}-${process.pid}`;
    await bundleInto(made, folder);
    // Another run may have been faster.
    if (existsSync(folder)) rmSync(made, { recursive: true });
    else renameSync(made, folder);
    try {
      warmUp(folder);
    } catch (error) {
      rmSync(folder, { recursive: true });
      throw error;
    }
  }
  process.env[bundleVariable] = hookIn(folder);
}

function addressOf(path: string): string {
  return pathToFileURL(join(root, path)).href;
}

function hookIn(folder: string): string {
  return pathToFileURL(join(folder, 'hook.js')).href;
}

/** Removes bundles that are a day old. Younger ones may belong to a run that goes on. */
function removeOldBundles(): void {
  if (!existsSync(cache)) return;
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name);
    if (statSync(folder).mtimeMs < Date.now() - 24 * 3_600_000)
      rmSync(folder, { recursive: true, force: true });
  }
}

async function bundleInto(folder: string, target: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const all = entries();
  const named = all.map((path) => [relative(root, path).replace(/\.ts$/, ''), path] as const);
  const packageNames = shared.map((name) => [`packages/${name}`, `${sharedPrefix}${name}`] as const);
  const build = await rolldown({
    input: Object.fromEntries([...named, ...packageNames]),
    platform: 'node',
    resolve: { conditionNames: ['sluice-source', 'node', 'import'] },
    external: (id, importer = '') =>
      /^[@\w]/.test(id) &&
      !/^sluice(?:\/|$)/.test(id) &&
      !packages.test(id) &&
      !importer.includes('/node_modules/'),
    plugins: [ownAddresses, httpAsObject, cheapPasswords, await sharedPackages()],
    logLevel: 'silent',
  });
  await build.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    keepNames: true,
    // A module runs when another one imports it and not because it stands in the same file.
    strictExecutionOrder: true,
    codeSplitting: {
      groups: [
        // What a primary process loads, which serves nothing.
        { name: 'primary', test: /\/core\/cli\/(?:main|start)\.ts$/, priority: 3 },
        { name: 'packages', test: /\/node_modules\//, priority: 2 },
        // Commands and the counter of tokens are loaded when they are needed.
        { name: 'core', test: /\/core\/(?!cli\/|tokens\/)/ },
        { name: 'plugins', test: /\/plugins\// },
        { name: 'channels', test: /\/channels\// },
      ],
    },
  });
  await build.close();
  const addresses = [
    ...named.map(([name, path]) => [name, pathToFileURL(path).href] as const),
    ...packageNames.map(([name], index) => [name, import.meta.resolve(shared[index] ?? '')] as const),
  ];
  const map = addresses.map(([name, url]) => [url, pathToFileURL(join(target, `${name}.js`)).href]);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(join(folder, 'hook.js'), hook(target, Object.fromEntries(map) as Record<string, string>));
}

/** Each module keeps the address of its source, by which it finds files beside it. */
const ownAddresses: Plugin = {
  name: 'own-addresses',
  transform: (code, id) =>
    code.includes('import.meta.url') && !id.includes('/node_modules/')
      ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
      : undefined,
};

/**
 * Imports of `node:http` read its object, as core/upstream/node-http.ts does: as names of an ES module they load all of Node's `fetch`, 14 MB.
 * In the sources they stand in files alone that are loaded when they are needed.
 */
const httpAsObject: Plugin = {
  name: 'http-as-object',
  transform: (code, id) =>
    code.includes(` from 'node:http'`) && !id.includes('/node_modules/')
      ? code.replace(
          /^import \{([^}]*)\} from 'node:http';$/m,
          (_statement, names: string) =>
            `const { ${names.replaceAll(/\btype \w+,?/g, '')} } = process.getBuiltinModule('node:http');`,
        )
      : undefined,
};

const cheapPasswords: Plugin = {
  name: 'cheap-passwords',
  transform: (code, id) => (id === passwordHashFile ? withCheapPasswords(code) : undefined),
};

const sharedPrefix = 'shared:';

/** Entries for the packages that are shared, with all their names: those of CommonJS are not known to the bundler. */
async function sharedPackages(): Promise<Plugin> {
  const names = new Map<string, readonly string[]>();
  for (const name of shared) names.set(name, Object.keys((await import(name)) as object));
  return {
    name: 'shared-packages',
    resolveId: (id) => (id.startsWith(sharedPrefix) ? id : undefined),
    load: (id) => {
      if (!id.startsWith(sharedPrefix)) return undefined;
      const name = id.slice(sharedPrefix.length);
      const exported = (names.get(name) ?? []).filter(
        (one) => one !== 'default' && /^[a-z_$][\w$]*$/i.test(one),
      );
      const list = exported.map(
        (one) => `const value_${one} = all.${one};\nexport { value_${one} as ${one} };`,
      );
      return `import * as all from '${name}';\n${list.join('\n')}\nexport default all.default;\n`;
    },
  };
}

/**
 * Returns a module that makes Node load an entry of the bundle in place of its source, but not for sources and for the tests themselves.
 * Other modules of ours may not be loaded beside the bundle, because there would be two of each of them and of their classes.
 */
function hook(path: string, map: Readonly<Record<string, string>>): string {
  const ours = ['core/', 'plugins/', 'channels/'].map(addressOf);
  return `import { registerHooks } from 'node:module';
const bundled = ${JSON.stringify(map)};
const ours = ${JSON.stringify(ours)};
const tests = ${JSON.stringify(addressOf('test/'))};
const lender = ${JSON.stringify(addressOf('core/config/installation/resolve.ts'))};
const bundle = ${JSON.stringify(pathToFileURL(join(path, '/')).href)};
const isSource = (url) => url.endsWith('.ts') && ours.some((folder) => url.startsWith(folder));
const isPackage = (url) => url.includes('/node_modules/') && !url.startsWith(bundle);
// In the name of this file the gateway looks for packages that an operator has not installed.
const keepsSources = (url) => url !== lender && (isSource(url) || url.startsWith(tests) || isPackage(url));
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const { parentURL } = context;
    const url = parentURL !== undefined && keepsSources(parentURL) ? undefined : bundled[found.url];
    if (url !== undefined) return { ...found, url, format: 'module' };
    // Files that are run, such as those of threads, have no parent.
    if (parentURL === undefined || keepsSources(parentURL) || !isSource(found.url)) return found;
    throw new Error(found.url + ' is no entry of the bundle of this run: see test/support/bundle.ts');
  },
});
`;
}

/** Loads everything once, so that the processes that start first find it compiled. */
function warmUp(folder: string): void {
  const modules = globSync('{core/sdk,channels,plugins}/**/*.js', { cwd: folder });
  const addresses = modules.map((path) => pathToFileURL(join(folder, path)).href);
  const script = `await Promise.all(${JSON.stringify(addresses)}.map((address) => import(address)))`;
  execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { PATH: process.env.PATH, ...compiled },
  });
}
