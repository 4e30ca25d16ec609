/** Runs the command that the arguments name. */
import { version } from '../config/installation/home.ts';
import { resolveHere } from '../config/installation/resolve.ts';
import { UsageError } from './command.ts';
import { commands } from './commands.ts';

resolveHere();
process.exitCode = await main(process.argv.slice(2));

/** Runs one command and returns the exit code. */
async function main([name = 'help', ...rest]: readonly string[]): Promise<number> {
  if (name === '--version' || name === '-v' || name === 'version') {
    console.log(version);
    return 0;
  }
  const wantsHelp = name === 'help' || name === '--help' || name === '-h';
  const command = await commands[wantsHelp ? (rest[0] ?? '') : name]?.();
  if (wantsHelp || rest.includes('--help') || rest.includes('-h')) {
    const narrower = wantsHelp ? rest.slice(1) : rest.filter((one) => one !== '--help' && one !== '-h');
    console.log(
      (await command?.helpFor?.(narrower).catch(() => undefined)) ?? command?.help ?? (await overview()),
    );
    return command === undefined && rest.length > 0 && wantsHelp ? 2 : 0;
  }
  if (command === undefined) {
    console.error(`Unknown command "${name}".\n\n${await overview()}`);
    return 2;
  }
  try {
    return await command.run(rest);
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\nSee: sluice help ${name}`);
      return 2;
    }
    console.error((await import('./explain.ts')).explain(error));
    return error instanceof Error && 'exitCode' in error ? Number(error.exitCode) : 1;
  }
}

async function overview(): Promise<string> {
  const lines = Object.entries(commands).map(
    async ([name, load]) => `  ${name.padEnd(17)}${(await load()).summary}`,
  );
  return `Sluice ${version}: a self-hosted LLM gateway.

Usage: sluice COMMAND [options]

${(await Promise.all(lines)).join('\n')}
  help             Shows the help of a command, such as: sluice help key

All commands accept --config FILE. Default: SLUICE_CONFIG, else gateway.config.ts in the current folder.`;
}
