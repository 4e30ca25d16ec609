import { closeSync, openSync } from 'node:fs';
import { extname } from 'node:path';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { giveBackMemory } from '../performance/memory.ts';
import { Primary } from '../processes/primary.ts';
import { readArguments, type Command } from './command.ts';

/** `sluice start`: runs the gateway until a signal stops it. */
export const start: Command = {
  summary: 'Runs the gateway.',
  help: `Usage: sluice start [--config FILE] [--watch]

Starts the gateway, and prints its address, plugins and channels. All further output is the log: one JSON object a line.
The first start creates a database, an admin password and an API key. It shows the password and the key only once.

--watch  Reloads after each change to the config, to .env, or to a plugin or channel beside the config.

Signals:
  SIGHUP   Reloads the config, .env, plugins and channels. Running calls continue. If the config is invalid, the gateway
           keeps the configuration that it has, and logs the problems.
  SIGTERM  Stops: /readyz answers 503 for the time of timeouts.drainDelay. Then the gateway accepts no more calls, finishes
           the running ones, and exits.
  SIGINT   (Ctrl-C in a terminal) Stops in the same way, but without the delay.
A second signal skips the delay. Without a delay, or after it, the gateway ends all calls and exits at once.`,
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

/** Milliseconds within which a second signal is ignored, because one Ctrl-C may arrive from the terminal and again from npm or the launcher. */
const sameKeyPress = 500;

/** Waits for the first signal to stop. A second one skips the drain delay, or else kills all processes. SIGHUP reloads. */
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
      // The system sends the same signal when the terminal of the gateway is closed.
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
