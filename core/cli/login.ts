/** `sluice login`: signs in where a channel needs it. */
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '../config/config.ts';
import { findChannelKinds } from '../config/definitions.ts';
import { home } from '../config/installation/home.ts';
import type { DeviceLogin } from '../sdk/author/channel.ts';
import { deviceToken } from '../upstream/credentials/device-login.ts';
import { openServices } from '../upstream/services.ts';
import { readArguments, UsageError, type Command } from './command.ts';

const help = `Usage: sluice login KIND [--host HOST]

Gets the key of a channel for providers whose keys are had by signing in, such as github-copilot. Shows an address and a code to
enter there, and waits until that is done. Prints the key to standard output, this once; all else goes to standard error, so that
KEY=$(sluice login github-copilot) holds the key alone. Nothing is stored: keep the key where the config reads it, as
key: env('GITHUB_COPILOT_TOKEN').

  --host  Signs in at a company's own host, such as COMPANY.ghe.com, where the provider has those.`;

/** A name of a host, without scheme, path and port. */
const hostName = /^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i;

/** Returns the sign-in at a company's own host. Throws UsageError where the provider has none, or where this is no name of a host. */
export function loginAt(name: string, login: DeviceLogin, host: string | undefined): DeviceLogin {
  if (host === undefined) return login;
  if (login.hasOwnHosts !== true) throw new UsageError(`"${name}" has no sign-in at hosts of companies.`);
  if (!hostName.test(host))
    throw new UsageError(`"${host}" is no name of a host: write it without https:// and without a path.`);
  const at = (address: string): string => {
    const url = new URL(address);
    url.host = host;
    return url.href;
  };
  return { ...login, deviceUrl: at(login.deviceUrl), tokenUrl: at(login.tokenUrl) };
}

/** `sluice login`: gets the key of a channel by signing in at its provider. */
export const login: Command = {
  summary: 'Gets the key of a channel by signing in at its provider.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, { host: { type: 'string' } });
    const [name, ...more] = positionals;
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
      const token = await deviceToken(loginAt(name, grant, values.host), {
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
