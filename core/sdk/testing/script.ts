/** Builds and plays scripted responses of a channel for tests: texts, reasoning, tool calls, pauses and failures as events. */
import { Observable } from 'rxjs';
import type { FinishReason, GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { GatewayError } from '../errors.ts';

/** Step that is no event: a wait in milliseconds, or a failure. */
type Action = { readonly wait: number } | { readonly fail: Error };

/**
 * One step of a scripted reply.
 *
 * @example
 * const steps: readonly Step[] = [{ type: 'head', id: 'reply_1', model: 'any' }, { wait: 500 }];
 */
export type Step = GatewayEvent | Action;

/**
 * A part of a scripted reply: a text, or what `text`, `thought`, `toolCall`, `pause`, `cut` and `fail` make.
 *
 * @example
 * const part: Part = pause(500);
 */
export type Part = string | MadePart;

type MadePart = (block: number) => readonly Step[];

/**
 * A reply as a channel would give it.
 *
 * @example
 * const script: Script = reply(thought('Hm.'), 'Hello.');
 */
export type Script = readonly Step[];

/**
 * How a scripted reply ends.
 *
 * @example
 * const ending: Ending = { finish: 'length', usage: { output: 4096 } };
 */
export interface Ending {
  /** Default: `tool-calls` when there are any, else `stop`. */
  readonly finish?: FinishReason;
  /** Default: 10 tokens in and 5 out. */
  readonly usage?: Partial<Usage>;
}

const position = (block: number): { readonly block: number; readonly choice: number } => ({
  block,
  choice: 0,
});

/**
 * Returns a text in these pieces.
 *
 * @example
 * reply(text('moon', 'shine'))
 */
export function text(...pieces: readonly string[]): MadePart {
  return (block) => [
    { type: 'text-start', ...position(block) },
    ...pieces.map((piece): GatewayEvent => ({ type: 'text-delta', ...position(block), text: piece })),
    { type: 'text-end', ...position(block) },
  ];
}

/**
 * Returns reasoning in these pieces.
 *
 * @example
 * reply(thought('The user greets.'), 'Hello.')
 */
export function thought(...pieces: readonly string[]): MadePart {
  return (block) => [
    { type: 'reasoning-start', ...position(block) },
    ...pieces.map((piece): GatewayEvent => ({ type: 'reasoning-delta', ...position(block), text: piece })),
    { type: 'reasoning-end', ...position(block) },
  ];
}

/**
 * Returns a call of one of the client's tools.
 *
 * @example
 * reply(toolCall('weather', { city: 'Oslo' }), toolCall('weather', { city: 'Rome' }))
 */
export function toolCall(name: string, input: JsonObject, id?: string): MadePart {
  return (block) => [
    { type: 'tool-start', ...position(block), id: id ?? `call_${block}`, name },
    { type: 'tool-delta', ...position(block), input: JSON.stringify(input) },
    { type: 'tool-end', ...position(block) },
  ];
}

/**
 * Returns a pause of so many milliseconds.
 *
 * @example
 * reply('Well', pause(500), ' then.')
 */
export function pause(milliseconds: number): MadePart {
  return () => [{ wait: milliseconds }];
}

/**
 * Returns a failure as when the provider closes the connection in the middle. Parts after it are not sent.
 *
 * @example
 * reply('Half of', cut())
 */
export function cut(): MadePart {
  const error = new GatewayError(
    'upstream_cut',
    'The upstream closed the connection before the response was complete.',
    {
      origin: 'upstream',
    },
  );
  return fail(error);
}

/**
 * Returns a failure of the channel. At the beginning of a response `next` rejects with it.
 *
 * @example
 * reply(fail(new GatewayError('upstream_error', 'Too many requests.', { status: 429 })))
 */
export function fail(error: Error): MadePart {
  return () => [{ fail: error }];
}

/**
 * Returns a whole response: head, these parts, finish reason and usage.
 *
 * @example
 * reply(thought('Hm.'), text('moon', 'shine'), pause(500), toolCall('weather', { city: 'Oslo' }))
 */
export function reply(...parts: readonly Part[]): Script {
  return scriptOf({}, parts);
}

/**
 * Does the same as {@link reply}, with another finish reason or usage.
 *
 * @example
 * ended({ finish: 'length', usage: { output: 4096 } }, 'A long story that')
 */
export function ended(ending: Ending, ...parts: readonly Part[]): Script {
  return scriptOf(ending, parts);
}

function scriptOf({ finish, usage }: Ending, parts: readonly Part[]): Script {
  const steps = parts.flatMap((part, block) => made(part)(block));
  const first = steps[0];
  if (first !== undefined && 'fail' in first) return [first];
  const calls = steps.some((step) => 'type' in step && step.type === 'tool-start');
  return [
    { type: 'head', id: 'reply_1', model: 'scripted' },
    ...steps,
    { type: 'finish', choice: 0, reason: finish ?? (calls ? 'tool-calls' : 'stop') },
    {
      type: 'usage',
      usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, reasoning: 0, ...usage },
    },
  ];
}

function made(part: Part): MadePart {
  return typeof part === 'string' ? text(part) : part;
}

/** Plays a script to one subscriber, as fast as its pauses allow. */
export function played(script: Script): Observable<GatewayEvent> {
  return new Observable((subscriber) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const play = (from: number): void => {
      for (let index = from; index < script.length && !subscriber.closed; index += 1) {
        const step = script[index] as Step;
        if ('wait' in step) {
          timer = setTimeout(() => play(index + 1), step.wait);
          return;
        }
        if ('fail' in step) {
          subscriber.error(step.fail);
          return;
        }
        subscriber.next(step);
      }
      subscriber.complete();
    };
    play(0);
    return () => clearTimeout(timer);
  });
}
