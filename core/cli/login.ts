/** `sluice login`: signs in where a channel needs it. */
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError } from '../config/config.ts';
import { findChannelKinds, findPlugins } from '../config/definitions.ts';
import { home } from '../config/installation/home.ts';
import type { DeviceLogin } from '../sdk/author/channel.ts';
import { deviceToken } from '../upstream/credentials/device-login.ts';
import { env } from '../settings/environment.ts';
import { openServices } from '../upstream/services.ts';
import { readArguments, UsageError, type Command } from './command.ts';

const help = `Usage: sluice login KIND [--host HOST]
       sluice login PLUGIN ADDRESS [--scope SCOPES] [--port PORT] [--client-id ID] [--client-metadata URL]

The first form gets the key of a channel for providers whose keys are had by signing in, such as github-copilot. Shows an address and a
code to enter there, and waits until that is done. The second form gets a credential for a service of a plugin, such as
sluice login mcp https://mcp.example.com/mcp. Shows an address at which to sign in, and waits for the browser to come back.

Prints the key or credential to standard output, this once; all else goes to standard error, so that
KEY=$(sluice login github-copilot) holds the key alone. Nothing is stored: keep the key where the config reads it, as
key: env('GITHUB_COPILOT_TOKEN') or oauth: { signIn: env('TICKETS_SIGN_IN') }.

  --host             Signs in at a company's own host, such as COMPANY.ghe.com, where the provider has those.
  --scope            Asks for these scopes, separated by spaces. Default: those that the service names.
  --port             Port on 127.0.0.1 to which the browser comes back. Default: any free one.
  --client-id        Uses this registration. Default: the service registers Sluice by itself. The secret is read from the
                     environment variable SLUICE_LOGIN_CLIENT_SECRET.
  --client-metadata  Uses this document (HTTPS) as the registration, where the service takes that.`;

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

/** `sluice login`: gets the key of a channel by signing in at its provider, or a credential for a service of a plugin. */
export const login: Command = {
  summary: 'Gets the key of a channel, or a credential for a plugin, by signing in.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      host: { type: 'string' },
      scope: { type: 'string' },
      port: { type: 'string' },
      'client-id': { type: 'string' },
      'client-metadata': { type: 'string' },
    });
    const [name, address, ...more] = positionals;
    if (name === undefined || more.length > 0)
      throw new UsageError('Name one channel kind, or a plugin and an address: sluice login KIND.');
    if (address !== undefined) return await signInAt(name, address, values);
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
        print: (line) => console.error(line),
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

/** Signs in at a service of a plugin, and prints the credential. */
async function signInAt(
  name: string,
  address: string,
  values: Readonly<Record<string, string | boolean | undefined>>,
): Promise<number> {
  const text = (option: string): string | undefined => values[option]?.toString();
  const port = text('port');
  if (port !== undefined && !/^\d{1,5}$/.test(port)) throw new UsageError(`"${port}" is no port.`);
  const problems: string[] = [];
  const plugins = await findPlugins(home, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const signIn = plugins.find(({ spec }) => spec.name === name)?.spec.signIn;
  if (signIn === undefined) {
    const known = plugins.flatMap(({ spec }) => (spec.signIn === undefined ? [] : [spec.name]));
    throw new UsageError(`"${name}" is no plugin with a sign-in. There is: ${known.join(', ')}.`);
  }
  const services = openServices();
  try {
    const credential = await signIn({
      address,
      scope: text('scope'),
      clientId: text('client-id'),
      clientSecret: env('SLUICE_LOGIN_CLIENT_SECRET'),
      clientMetadata: text('client-metadata'),
      port: port === undefined ? undefined : Number(port),
      http: services,
      tell: (line) => console.error(line),
    });
    console.log(credential);
    return 0;
  } finally {
    await services.close();
  }
}
