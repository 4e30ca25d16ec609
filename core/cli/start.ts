import { closeSync, openSync } from 'node:fs';
import { extname } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { giveBackMemory } from '../performance/memory.ts';
import { Primary } from '../processes/primary.ts';
import { readArguments, type Command } from './command.ts';

/** `sluice start`: runs the gateway until it is told to stop. */
export const start: Command = {
  summary: 'Runs the gateway.',
  help: `Usage: sluice start [--config FILE] [--watch]

Starts the gateway and says what is in force; from then on every line is a log line in JSON.
The first start makes a database, an admin password and a first API key, which are shown this once.

--watch: a change to the config, to .env, or to a plugin or channel beside the config is followed at once.

SIGHUP: follows such changes. Open calls are not touched; a config that is wrong changes nothing, and the log says why.
SIGTERM: announces the stop for timeouts.drainDelay (/readyz answers 503), then takes no more calls, lets open ones
finish, and ends. SIGINT (Ctrl-C in a terminal) does the same without the announcement.
A second signal ends the announcement; where there is none it ends everything at once.`,
  async run(args) {
    const { values } = readArguments(args, { watch: { type: 'boolean' } });
    const primary = new Primary({
      program: fileURLToPath(new URL(`worker${extname(import.meta.url)}`, import.meta.url)),
      config: values.config,
      watch: values.watch === true,
      show: (text) => console.log(text),
    });
    const fromTerminal = isatty(0) || isatty(1);
    const stop = stopSignal(primary);
    const starting = primary.start();
    const signalled = await Promise.race([stop, starting]);
    if (typeof signalled === 'string') {
      await primary.stop(signalled, false);
      return 0;
    }
    if (!signalled.ok) {
      console.error(signalled.problems.join('\n'));
      return 1;
    }
    giveBackMemory({ isIdle: true, ended: 0 });
    const outcome = await Promise.race([
      stop.then((signal) => ({ signal })),
      primary.givenUp.then((problem) => ({ problem })),
    ]);
    if ('problem' in outcome) {
      await primary.kill();
      console.error(outcome.problem);
      return 1;
    }
    await primary.stop(outcome.signal, outcome.signal === 'SIGTERM' || !fromTerminal);
    return 0;
  },
};

/** One Ctrl-C may arrive twice: from the terminal, and from npm or our launcher, which pass it on. */
const sameKeyPress = 500;

/** Waits for the first signal that asks for an end. The next one ends the announcement or else everything. SIGHUP asks for a reload. */
function stopSignal(primary: Primary): Promise<NodeJS.Signals> {
  const hadTerminal = hasTerminal();
  return new Promise((resolve) => {
    let lastSignalAt: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const isRepeated = lastSignalAt !== undefined && performance.now() - lastSignalAt < sameKeyPress;
      if (isRepeated) return;
      if (lastSignalAt !== undefined && !primary.hurry()) void primary.kill().finally(() => process.exit(1));
      lastSignalAt = performance.now();
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    process.on('SIGHUP', (signal) => {
      // The same signal says that the terminal in which it was started has been closed.
      if (hadTerminal && !hasTerminal()) onSignal(signal);
      else void primary.reload(signal);
    });
  });
}

function hasTerminal(): boolean {
  if (!process.stdout.isTTY) return false;
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
