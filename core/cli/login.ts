/** `sluice login`: signs in at a provider or a service, and prints the key or credential. */
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

The first form gets the key of a channel from a provider that issues keys after a sign-in, such as github-copilot. It prints an address
and a code to enter there, and waits for the sign-in. The second form gets a credential for a service that a plugin uses, such as
sluice login mcp https://mcp.example.com/mcp. It prints an address for the sign-in, and waits for the redirect of the browser.

Prints the key or credential to standard output, only this once, and everything else to standard error, so that
KEY=$(sluice login github-copilot) contains the key alone. Sluice does not store it. Set it in the environment, and read it in the
config: key: env('GITHUB_COPILOT_TOKEN') or oauth: { signIn: env('TICKETS_SIGN_IN') }.

  --host             Host of the sign-in of your company, such as COMPANY.ghe.com, for providers that support this.
  --scope            OAuth scopes to request, separated by spaces. Default: the scopes that the service names.
  --port             Port on 127.0.0.1 for the redirect of the browser. Default: any free port.
  --client-id        Id of an OAuth client that you registered. Its secret is read from SLUICE_LOGIN_CLIENT_SECRET.
                     Default: Sluice registers a client at the service.
  --client-metadata  HTTPS address of a client metadata document, for services that accept one in place of a registration.`;

/** Matches a host name without scheme, path and port. */
const hostName = /^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i;

/** Returns the sign-in at the host of a company. Throws UsageError when the provider does not support this, or when the name is invalid. */
export function loginAt(name: string, login: DeviceLogin, host: string | undefined): DeviceLogin {
  if (host === undefined) return login;
  if (login.hasOwnHosts !== true) throw new UsageError(`"${name}" does not support --host.`);
  if (!hostName.test(host))
    throw new UsageError(`Invalid --host "${host}". Use a host name without https:// and without a path.`);
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
      throw new UsageError(
        'Name a channel kind (sluice login KIND), or a plugin and an address (sluice login PLUGIN ADDRESS).',
      );
    if (address !== undefined) return await signInAt(name, address, values);
    const problems: string[] = [];
    const kinds = await findChannelKinds(home, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    const grant = kinds.find(({ spec }) => spec.name === name)?.spec.login;
    if (grant === undefined) {
      const known = kinds.flatMap(({ spec }) => (spec.login === undefined ? [] : [spec.name]));
      throw new UsageError(
        `"${name}" is not a channel kind with a sign-in. Use one of: ${known.join(', ')}.`,
      );
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
  if (port !== undefined && !/^\d{1,5}$/.test(port))
    throw new UsageError(`Invalid --port "${port}". Use a number such as 8765.`);
  const problems: string[] = [];
  const plugins = await findPlugins(home, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const signIn = plugins.find(({ spec }) => spec.name === name)?.spec.signIn;
  if (signIn === undefined) {
    const known = plugins.flatMap(({ spec }) => (spec.signIn === undefined ? [] : [spec.name]));
    throw new UsageError(`"${name}" is not a plugin with a sign-in. Use one of: ${known.join(', ')}.`);
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
