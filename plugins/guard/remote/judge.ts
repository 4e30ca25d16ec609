/**
 * Contract of remote checks, and the functions that they share: parallel requests, JSON of responses, cutting of long texts, labels, offsets in
 * code points.
 */
import type { Call, PluginTools } from 'sluice';

/** Text that is judged. */
export interface JudgedText {
  readonly text: string;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
}

/** Question to a remote check. */
export interface Question {
  readonly side: 'request' | 'response';
  readonly texts: readonly JudgedText[];
  readonly call: Call;
  /** Signal of the call that waits for the answer; undefined where none does. */
  readonly signal: AbortSignal | undefined;
  /** True where the call may end before the answer comes. */
  readonly outlivesCall: boolean;
}

/** A place in a text that has to be masked. Offsets count UTF-16 code units. */
export interface Find {
  /** Index of the text. */
  readonly text: number;
  readonly start: number;
  readonly end: number;
  readonly label: string;
}

/** Finding without a usable position. A check that masks fails then. */
export const noPosition: Find = { text: -1, start: 0, end: 0, label: 'VALUE' };

/** Answer of a remote check. */
export interface Verdict {
  readonly flagged: boolean;
  /** Names of categories, never texts. */
  readonly reasons: readonly string[];
  /** True where the service objects to more than `finds`, so that masking is not enough. */
  readonly blocked?: boolean;
  /** Places to mask, of services that name them. */
  readonly finds?: readonly Find[];
}

/** Runs a remote check. Rejects where there is no response, or an invalid one. */
export type Judge = (question: Question) => Promise<Verdict>;

/** Services for judges. `timeout` is in milliseconds, for one request. */
export interface JudgeTools extends Pick<PluginTools, 'http' | 'subcall'> {
  readonly timeout: number;
}

/** Maximum number of requests of one check at a time. */
const maxAtOnce = 4;

/** Runs `work` for each item, at most four at a time, and returns the results in order. */
export async function forEach<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index];
      // Sequential within a worker, because the workers run in parallel.
      // oxlint-disable-next-line no-await-in-loop
      if (item !== undefined) results[index] = await work(item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxAtOnce, items.length) }, worker));
  return results;
}

/** Returns the JSON of a service's answer. Throws for every status but 200. */
export function answerOf(
  name: string,
  answer: { readonly status: number; json(): unknown },
): Readonly<Record<string, unknown>> | readonly unknown[] {
  if (answer.status !== 200) throw new Error(`${name} answered ${answer.status}.`);
  const value = answer.json();
  if (typeof value !== 'object' || value === null) throw new Error(`${name} did not return a JSON object.`);
  return value as Readonly<Record<string, unknown>>;
}

/** Cuts a text into pieces of at most so many characters, at a space where there is one. */
export function piecesOf(text: string, most: number): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > most) {
    const space = text.lastIndexOf(' ', from + most);
    let end = space > from + most / 2 ? space : from + most;
    if (/[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1;
    pieces.push(text.slice(from, end));
    from = end;
  }
  pieces.push(text.slice(from));
  return pieces;
}

/** Returns a label in the form that placeholders have: letters A to Z and underscores. */
export function labelOf(name: string): string {
  const label = name
    .toUpperCase()
    .replaceAll(/[^A-Z]+/g, '_')
    .replaceAll(/^_+|_+$/g, '');
  return label === '' ? 'VALUE' : label.slice(0, 40);
}

/** Converts offsets in code points, as Python counts, to those in UTF-16 code units. Offsets beyond the text are -1. */
export function codePointOffsets(text: string): (offset: number) => number {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => (offset <= text.length ? offset : -1);
  const units: number[] = [];
  let at = 0;
  for (const character of text) {
    units.push(at);
    at += character.length;
  }
  units.push(at);
  return (offset) => units[offset] ?? -1;
}
