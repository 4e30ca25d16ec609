// Builds the page: `npm run build`, and `prepare` after an installation. With --if-possible it is no failure that there is nothing to
// build it with, as in an installation without the development packages; the plugin then says what to do.
import { fileURLToPath } from 'node:url';

// Whatever the machine says: the page is not built for developers.
process.env.NODE_ENV = 'production';

const vite = await import('vite').catch((error) => {
  if (!process.argv.includes('--if-possible')) throw error;
  console.log('The dashboard is not built: vite is not installed.');
});

await vite?.build({
  configFile: fileURLToPath(new URL('vite.config.ts', import.meta.url)),
  logLevel: 'warn',
});
