import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join, resolve } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Maximum size of the page, compressed, in bytes. */
const allowed = 200 * 1024;

/** Writes each file compressed beside itself, prints what the page weighs, and fails the build when that is too much. */
function compressed(): Plugin {
  let dist = '';
  return {
    name: 'compressed',
    apply: 'build',
    configResolved({ root, build }) {
      dist = resolve(root, build.outDir);
    },
    closeBundle() {
      let total = 0;
      for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(html|js|css|svg)$/.test(name)) continue;
        const gzip = gzipSync(readFileSync(join(dist, name)), { level: constants.Z_BEST_COMPRESSION });
        writeFileSync(join(dist, `${name}.gz`), gzip);
        total += gzip.length;
      }
      console.log(
        `The dashboard is ${(total / 1024).toFixed(1)} KB compressed, of ${allowed / 1024} KB allowed.`,
      );
      if (total > allowed) this.error('the page has become too heavy');
    },
  };
}

/** `vite build plugins/dashboard/web` writes the page to `plugins/dashboard/dist`, from where the plugin serves it. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/dashboard/',
  plugins: [react(), compressed()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    // Everything is a file of this origin: the page's policy forbids the rest.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
  },
  // For work on the page: `vite plugins/dashboard/web`, with a gateway on its usual port.
  server: {
    proxy: {
      '/api': 'http://127.0.0.1:8080',
      '/v1': 'http://127.0.0.1:8080',
      '/v1beta': 'http://127.0.0.1:8080',
    },
  },
});
