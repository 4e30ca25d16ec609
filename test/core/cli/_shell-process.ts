/** Runs `sluice` commands one after the other in this process, as `_shell.ts` sends them, each as if the process had been started for it. */
import { fileURLToPath } from 'node:url';

const main = new URL('../../../core/cli/main.ts', import.meta.url);
const environment = { ...process.env };
const [program = ''] = process.argv;
let commands = 0;

interface Order {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

process.on('message', ({ args, environment: more }: Order) => {
  void (async () => {
    const written = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      process[name].write = (text: string | Uint8Array): boolean => {
        written[name] += String(text);
        return true;
      };
    process.argv = [program, fileURLToPath(main), ...args];
    process.env = { ...environment, ...more };
    // Another address is another module: it reads its arguments anew.
    await import(`${main.href}?${(commands += 1)}`);
    process.send?.({ code: process.exitCode, ...written });
  })();
});
