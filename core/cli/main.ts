import { ConfigError } from '../config.ts';
import { PostgresError } from '../state/postgres.ts';
import { check } from './check.ts';
import { UsageError, type Command } from './command.ts';
import { version } from './describe.ts';
import { key } from './key.ts';
import { prices } from './prices.ts';
import { start } from './start.ts';

const commands: Readonly<Record<string, Command>> = { start, check, key, prices };

const overview = `Sluice ${version}: a gateway in front of model providers.

Usage: sluice COMMAND [options]

${Object.entries(commands)
  .map(([name, { summary }]) => `  ${name.padEnd(8)}${summary}`)
  .join('\n')}
  help    Explains a command: sluice help key.

Every command takes --config FILE (default: SLUICE_CONFIG, else gateway.config.ts in the current folder).`;

process.exitCode = await main(process.argv.slice(2));

/** Runs one command and returns the exit code. */
async function main([name = 'help', ...rest]: readonly string[]): Promise<number> {
  if (name === '--version' || name === '-v' || name === 'version') {
    console.log(version);
    return 0;
  }
  const wantsHelp = name === 'help' || name === '--help' || name === '-h';
  const command = commands[wantsHelp ? (rest[0] ?? '') : name];
  if (wantsHelp || rest.includes('--help') || rest.includes('-h')) {
    console.log(command?.help ?? overview);
    return command === undefined && rest.length > 0 && wantsHelp ? 2 : 0;
  }
  if (command === undefined) {
    console.error(`There is no command "${name}".\n\n${overview}`);
    return 2;
  }
  try {
    return await command.run(rest);
  } catch (error) {
    console.error(explained(error, name));
    return error instanceof UsageError ? 2 : 1;
  }
}

/** What went wrong, for a person: what we throw is a sentence; what the language throws is a bug, and its report needs the stack. */
function explained(error: unknown, command: string): string {
  if (error instanceof UsageError) return `${error.message}\nSee: sluice help ${command}`;
  if (error instanceof ConfigError) return error.problems.join('\n');
  if (!(error instanceof Error)) return String(error);
  return error.constructor === Error || error instanceof PostgresError
    ? error.message
    : (error.stack ?? error.message);
}
