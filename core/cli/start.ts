import { ConfigError, loadConfig } from '../config.ts';
import { createLog, hideSecret, type Log } from '../log.ts';
import { startServer, type RunningServer } from '../server.ts';
import { openAdminPassword } from '../state/admin-password.ts';
import { examine } from './check.ts';
import { readArguments, type Command } from './command.ts';
import { describeGateway, version } from './describe.ts';

/** `sluice start`: runs the gateway until it is told to stop. */
export const start: Command = {
  summary: 'Runs the gateway.',
  help: `Usage: sluice start [--config FILE]

Starts the gateway and says what is in force; from then on every line is a log line in JSON.
The first start makes a database, an admin password and a first API key, which are shown this once.

SIGTERM or SIGINT (Ctrl-C): takes no more calls, lets open ones finish, and ends. A second one ends at once.`,
  async run(args) {
    const { values } = readArguments(args, {});
    let server: RunningServer;
    let log: Log;
    const stop = stopSignal();
    try {
      const config = await loadConfig(values.config);
      log = createLog(config.settings.log.level);
      endOnBugs(log);
      server = await startServer(config, log);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      // The first step that fails knows only its own problems: the operator is told all of them.
      const { problems } = await examine(values.config);
      throw new ConfigError([...new Set([...error.problems, ...problems])]);
    }
    console.log(`${banner(server, await firstPassword(server))}\n`);
    const signal = await stop;
    log.info({ signal }, 'stopping: open calls may finish');
    await server.close();
    log.info('stopped');
    return 0;
  },
};

/** The admin password, when this start is the first that has an admin API. */
async function firstPassword({ gateway, stores }: RunningServer): Promise<string | undefined> {
  if (!gateway.routes.some(({ path }) => path === '/api/admin/login')) return undefined;
  const password = await openAdminPassword(stores).ensure();
  if (password !== undefined) hideSecret(password);
  return password;
}

function banner({ url, firstKey, gateway }: RunningServer, password: string | undefined): string {
  const [, port] = /\/\/(?:0\.0\.0\.0|\[::\]):(\d+)/.exec(url) ?? [];
  const address =
    port === undefined
      ? url.replace('127.0.0.1', 'localhost')
      : `http://localhost:${port} (on every address of this machine)`;
  const key =
    firstKey === undefined ? [] : [`The first API key, which is shown only this once:\n  ${firstKey}`];
  const admin =
    password === undefined
      ? []
      : [`The password of the dashboard (at /dashboard), which is shown only this once:\n  ${password}`];
  return [`Sluice ${version} listens on ${address}`, ...admin, ...key, describeGateway(gateway)].join('\n\n');
}

/** One Ctrl-C may arrive twice: from the terminal, and from npm or our launcher, which pass it on. */
const sameKeyPress = 500;

/** Waits for the first signal that asks for an end. The second ends the process at once. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (askedAt !== undefined && performance.now() - askedAt > sameKeyPress) process.exit(1);
      askedAt ??= performance.now();
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

/** After a failure that nobody caught the state is unknown: it is written down, and whoever watches the process starts it anew. */
function endOnBugs(log: Log): void {
  const end = (what: string) => (error: unknown) => {
    log.fatal({ error }, what);
    process.exit(1);
  };
  process.on('uncaughtException', end('an exception was not caught'));
  process.on('unhandledRejection', end('a rejection was not handled'));
  process.on('warning', (error) => log.warn({ error }, 'the process was warned'));
}
