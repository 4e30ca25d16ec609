/** Types and errors of trials, which check what a channel can do, and functions that read the responses. */
import { isObject, type JsonObject, type JsonValue } from '../model/json.ts';
import type { Operation } from '../sdk/format.ts';

/** Names of features that a provider may lack. */
export const lackNames = [
  'streams',
  'tools',
  'parallel tools',
  'images',
  'structured output',
  'reasoning',
  'limits',
  'documents',
  'prompt cache',
] as const;

/**
 * Feature that a provider may not have. Its cases are skipped.
 *
 * @example
 * const lacks: readonly Lack[] = ['images', 'reasoning'];
 */
export type Lack = (typeof lackNames)[number];

/** Test of one capability of a channel: its requests, and the checks of the responses. */
export interface Trial {
  readonly name: string;
  /** Missing feature, as in the test kit, without which the trial cannot succeed. */
  readonly lack?: Lack;
  /** Operation that the channel must serve. */
  readonly operation: Operation;
  /** Number of requests, and their maximum input and output tokens in total, for the announced cost. */
  readonly requests: number;
  readonly input: number;
  readonly output: number;
  /** Rejects with {@link Differs} or {@link Refused} where it does not hold. */
  run(asking: Asking): Promise<void>;
}

/** Asks the channel under trial, as a client of the gateway would. */
export interface Asking {
  /** The public name of the model. */
  readonly model: string;
  /** A name that the gateway sends on to the provider, who has no such model. */
  readonly stranger: string;
  /** The format of chats that the channel speaks first. */
  readonly format: string;
  /** Resolves with an answer that is no error; rejects with {@link Refused}. */
  request(path: string, body: JsonObject | FormData): Promise<Answer>;
  /** Resolves whatever the status, when the first of the answer is there. */
  look(path: string, body: JsonObject): Promise<Response>;
}

/** The provider answers, and not as it should. */
export class Differs extends Error {}

/** The provider does not take the request. */
export class Refused extends Error {}

/** Throws {@link Differs} with a sentence unless something holds. */
export function holds(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Differs(sentence);
}

/** An answer that is no error. */
export class Answer {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Throws {@link Differs} when it is no JSON. */
  get json(): JsonValue {
    try {
      return JSON.parse(this.bytes.toString()) as JsonValue;
    } catch {
      throw new Differs('the answer is no JSON');
    }
  }

  /** The data of its server-sent events, but for the last word of a stream of chat completions. */
  get frames(): readonly JsonValue[] {
    return [...this.bytes.toString().matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => {
      try {
        return JSON.parse(data) as JsonValue;
      } catch {
        throw new Differs(`an event of the stream is no JSON: ${data.slice(0, 80)}`);
      }
    });
  }

  /** True when the stream has its end marker. */
  get isDone(): boolean {
    return /data: \[DONE\]\s*$/.test(this.bytes.toString());
  }
}

/** Returns the value at a path of a document; undefined when there is none. */
export function at(
  value: JsonValue | undefined,
  ...path: readonly (string | number)[]
): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (found, step) => (found as Record<string | number, JsonValue> | null | undefined)?.[step],
    value,
  );
}

/** Returns the number at a path; 0 when there is none. */
export function countAt(value: JsonValue | undefined, ...path: readonly (string | number)[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** Returns the calls of tools in a message of chat completions, or joined from the pieces of its stream: names with what was given to them. */
export function callsOf(
  calls: readonly JsonValue[],
): readonly { readonly name: string; readonly input: JsonObject }[] {
  return calls.map((call) => {
    const text = at(call, 'function', 'arguments');
    let input: unknown;
    try {
      input = JSON.parse(String(text));
    } catch {
      input = undefined;
    }
    if (!isObject(input)) throw new Differs(`a tool is called with what is no JSON object: ${String(text)}`);
    return { name: String(at(call, 'function', 'name')), input };
  });
}

/** Returns the calls of a stream, put together from their pieces. */
export function streamedCalls(frames: readonly JsonValue[]): readonly JsonValue[] {
  const calls: { function: { name: string; arguments: string } }[] = [];
  for (const frame of frames) {
    const pieces = at(frame, 'choices', 0, 'delta', 'tool_calls');
    if (!Array.isArray(pieces)) continue;
    for (const piece of pieces as readonly JsonValue[]) {
      const index = countAt(piece, 'index');
      const call = (calls[index] ??= { function: { name: '', arguments: '' } });
      call.function.name += String(at(piece, 'function', 'name') ?? '');
      call.function.arguments += String(at(piece, 'function', 'arguments') ?? '');
    }
  }
  return calls.filter((call) => call !== undefined);
}
