import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '../config/config.ts';
import { findChannelKinds } from '../config/definitions.ts';
import { home } from '../config/installation/home.ts';
import { deviceToken } from '../upstream/credentials/device-login.ts';
import { openServices } from '../upstream/services.ts';
import { readArguments, UsageError, type Command } from './command.ts';

const help = `Usage: sluice login KIND

Gets the key of a channel for providers whose keys are had by signing in, such as github-copilot. Shows an address and a code to
enter there, and waits until that is done. Prints the key to standard output, this once; all else goes to standard error, so that
KEY=$(sluice login github-copilot) holds the key alone. Nothing is stored: keep the key where the config reads it, as
key: env('GITHUB_COPILOT_TOKEN').`;

/** `sluice login`: gets the key of a channel by signing in at its provider. */
export const login: Command = {
  summary: 'Gets the key of a channel by signing in at its provider.',
  help,
  async run(args) {
    const [name, ...more] = readArguments(args, {}).positionals;
    if (name === undefined || more.length > 0)
      throw new UsageError('Name one channel kind: sluice login KIND.');
    const problems: string[] = [];
    const kinds = await findChannelKinds(home, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    const grant = kinds.find(({ spec }) => spec.name === name)?.spec.login;
    if (grant === undefined) {
      const known = kinds.flatMap(({ spec }) => (spec.login === undefined ? [] : [spec.name]));
      throw new UsageError(`"${name}" is no channel kind with a sign-in. There is: ${known.join(', ')}.`);
    }
    const services = openServices();
    try {
      const token = await deviceToken(grant, {
        ask: (request) => services.ask(request),
        tell: (line) => console.error(line),
        wait: async (milliseconds) => wait(milliseconds),
        now: Date.now,
      });
      console.log(token);
      return 0;
    } finally {
      await services.close();
    }
  },
};
