/** Orders plugins by stage and dependencies, and composes their handlers into the pipeline of a call. */
import { isObservable, type Observable } from 'rxjs';
import type { Call } from '../sdk/call.ts';
import type { Handler, Next, PluginSpec, Stage } from '../sdk/define.ts';
import type { GatewayEvent } from '../model/event.ts';

/** The stages, outermost first. */
export const stages: readonly Stage[] = ['observe', 'identify', 'admit', 'shape', 'translate'];

/** A plugin that was set up. */
export interface Running {
  readonly name: string;
  readonly stage: Stage;
  readonly after: readonly string[];
  readonly handler: Handler;
}

/** Members of a plugin that {@link orderPlugins} reads. */
type Ordered = Pick<PluginSpec<never>, 'name' | 'stage' | 'after' | 'before'>;

/** Plugins that exist but do not run, for errors about plugins that must run after them. */
export interface Absent {
  /** Switched off, with the place where that stands. */
  readonly off?: ReadonlyMap<string, string>;
  /** Found, but run only when they are listed. */
  readonly unlisted?: ReadonlySet<string>;
}

/**
 * Puts plugins in the order in which they run: by stage, then by the list's order, moved behind what `after` and others' `before` name.
 * Returns the problems as sentences; the order is only meaningful when there are none.
 */
export function orderPlugins<P extends Ordered>(
  plugins: readonly P[],
  absent: Absent = {},
): { readonly order: readonly P[]; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const order: P[] = [];
  const byName = new Map(plugins.map((plugin) => [plugin.name, plugin]));

  for (const stage of stages) {
    const waiting = plugins.filter((plugin) => plugin.stage === stage);
    while (waiting.length > 0) {
      const index = waiting.findIndex(
        (plugin) => !waiting.some((other) => other !== plugin && mustPrecede(other, plugin)),
      );
      if (index < 0) {
        problems.push(
          `plugins ${waiting.map(({ name }) => `"${name}"`).join(', ')} depend on each other in "after" and "before": remove one of the names.`,
        );
        for (const plugin of waiting.splice(0)) order.push(plugin);
        break;
      }
      for (const plugin of waiting.splice(index, 1)) order.push(plugin);
    }
  }

  for (const plugin of plugins) {
    if (!stages.includes(plugin.stage)) {
      problems.push(
        `plugin "${plugin.name}" has the stage "${String(plugin.stage)}": write one of ${stages.join(', ')}.`,
      );
    }
    for (const name of plugin.after ?? []) {
      const other = byName.get(name);
      if (other === undefined) {
        problems.push(
          `plugin "${plugin.name}" must run after "${name}", ${whyAbsent(name, plugin.name, absent)}`,
        );
      } else if (stages.indexOf(other.stage) > stages.indexOf(plugin.stage)) {
        problems.push(
          `plugin "${plugin.name}" (stage ${plugin.stage}) must run after "${name}", which belongs to the later stage ${other.stage}.`,
        );
      }
    }
  }
  return { order, problems };
}

function mustPrecede(one: Ordered, other: Ordered): boolean {
  return other.after?.includes(one.name) === true || one.before?.includes(other.name) === true;
}

function whyAbsent(name: string, dependent: string, { off, unlisted }: Absent): string {
  const where = off?.get(name);
  if (where !== undefined)
    return `which is off in ${where}. Remove the off(), or switch "${dependent}" off too.`;
  if (unlisted?.has(name) === true)
    return `which runs only when it is listed. Add it to plugins, or switch "${dependent}" off.`;
  return `which does not exist. Check the spelling of the name in "after".`;
}

/** Composes handlers around a terminal, once at start-up. `checked` adds the diagnosis of misbehaving plugins; production does without. */
export function compose(plugins: readonly Running[], terminal: Next, checked: boolean): Next {
  if (plugins.length === 0) return terminal;
  const following = new Following();
  let next: Next = (call) => called(terminal, call, terminal);
  for (const plugin of plugins.toReversed())
    next = checked ? checkedStep(plugin, next, following) : step(plugin, next);
  return next;
}

/** Returns the function `next` for a handler. A synchronous exception becomes a rejection, and a stream that is returned directly is accepted. */
function step({ handler }: Running, next: Next): Next {
  return (call) => called(handler, call, next);
}

function called(handler: Handler, call: Call, next: Next): Promise<Observable<GatewayEvent>> {
  try {
    const events = handler(call, next);
    return events instanceof Promise ? events : Promise.resolve(events);
  } catch (error) {
    return Promise.reject(error as Error);
  }
}

/** Result of one call of `next`, and its state. */
class Followed {
  readonly events: Promise<Observable<GatewayEvent>>;
  state: 'running' | 'answered' | 'failed' = 'running';

  /** `over` runs when it has been answered, or has failed. */
  constructor(events: Promise<Observable<GatewayEvent>>, over: (followed: Followed) => void) {
    this.events = events;
    // Also handles the rejection when a plugin forgets to await, so that it is reported and does not end the process.
    events.then(
      () => {
        this.state = 'answered';
        over(this);
      },
      () => {
        this.state = 'failed';
        over(this);
      },
    );
  }
}

/**
 * Results that the steps of one pipeline follow. Most handlers return the very promise that they received, which the step behind them
 * follows already.
 */
class Following {
  #latest: Followed | undefined;

  follow(events: Promise<Observable<GatewayEvent>>): Followed {
    if (this.#latest?.events !== events) this.#latest = new Followed(events, this.#over);
    return this.#latest;
  }

  /** Drops a result that has settled. */
  readonly #over = (followed: Followed): void => {
    if (this.#latest === followed) this.#latest = undefined;
  };
}

/**
 * Results of a handler's calls of `next`. Not an array, because nearly every handler makes one call, and an array of one for each handler
 * was a tenth of all memory that a small call takes.
 */
class Made {
  #first: Followed | undefined;
  #others: Followed[] | undefined;

  add(one: Followed): void {
    if (this.#first === undefined) this.#first = one;
    else (this.#others ??= []).push(one);
  }

  /** Result of the only call. */
  get only(): Followed['events'] | undefined {
    return this.#others === undefined ? this.#first?.events : undefined;
  }

  isAny(state: Followed['state']): boolean {
    return this.#first?.state === state || this.#others?.some((one) => one.state === state) === true;
  }
}

/**
 * Runs a handler, and names its plugin in an error where it breaks the rules of the pipeline. It follows the promises that are there, each
 * once, and adds none: with an async function around each handler and another around each `next`, a small call through all plugins cost a
 * third more, and with two promises of its own for each handler a fifth more.
 */
function checkedStep({ name, handler }: Running, next: Next, following: Following): Next {
  return (call: Call) => {
    const made = new Made();
    let returned = false;
    const guarded: Next = (inner) => {
      if (inner === undefined)
        return refused(new TypeError(`plugin "${name}" called next() without a call: write next(call).`));
      // A call of the plugin's own, whose reply it reads itself: as many as it likes, whenever it likes.
      const isOwn = inner.edits.decoded === true;
      if (!isOwn && made.isAny('answered'))
        return refused(
          new Error(
            `plugin "${name}" called next() twice. A second call is allowed only after the first one failed.`,
          ),
        );
      if (returned && !isOwn)
        return refused(new Error(`plugin "${name}" called next() after it had returned.`));
      const events = next(inner);
      if (isOwn) events.catch(() => {});
      else made.add(following.follow(events));
      return events;
    };
    const given = called(handler, call, guarded);
    // The promise of the step behind, which that step has checked.
    if (made.only === given) {
      returned = true;
      return given;
    }
    return given.then((events: unknown) => {
      returned = true;
      if (made.isAny('running'))
        throw new Error(`plugin "${name}" returned before next resolved: await next(call).`);
      if (!isObservable(events))
        throw new TypeError(
          `plugin "${name}" returned no stream: return the result of next(call), or an Observable of events.`,
        );
      return events as Observable<GatewayEvent>;
    });
  };
}

/** Returns a rejected promise that counts as handled. */
function refused(misuse: Error): Promise<never> {
  const rejection = Promise.reject(misuse);
  rejection.catch(() => {});
  return rejection;
}
