import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

const finishes: ReadonlySet<unknown> = new Set(['stop', 'length', 'content_filter']);

/** Returns the problems that clients would have with a stream of this format; empty if there are none. */
export function checkLegal(frames: WireFrame[]): string[] {
  const problems: string[] = [];
  const answers = new Map<number, boolean>();
  let envelope: string | undefined;
  let over: 'done' | 'error' | undefined;
  for (const [index, frame] of frames.entries()) {
    const report = (problem: string): void => void problems.push(`frame ${index}: ${problem}`);
    if (frame.event !== undefined) report('has an event name');
    if (over !== undefined) report(`comes after ${over}`);
    if ('text' in frame) {
      if (frame.text !== '[DONE]') report(`text ${frame.text}`);
      over = 'done';
      continue;
    }
    const chunk = frame.json;
    if (chunk.error !== undefined) {
      over = 'error';
      if (!isObject(chunk.error) || typeof chunk.error.message !== 'string') report('error has no message');
      continue;
    }
    const { id, object, created, model } = chunk;
    if (typeof id !== 'string' || !/^cmpl-[A-Za-z0-9_-]+$/.test(id)) report(`id ${String(id)}`);
    if (object !== 'text_completion') report(`object ${String(object)}`);
    if (!Number.isInteger(created)) report(`created ${String(created)}`);
    const same = JSON.stringify([id, created, model]);
    envelope ??= same;
    if (same !== envelope) report('id, time or model changed');
    checkChoices(chunk, answers, report);
  }
  if (over === undefined) problems.push('no [DONE] and no error');
  if (over !== 'done') return problems;
  if (answers.size === 0) problems.push('no answer');
  for (const [index, finished] of answers)
    if (!finished) problems.push(`choice ${index} has no finish_reason`);
  return problems;
}

function checkChoices(
  { choices, usage }: JsonObject,
  answers: Map<number, boolean>,
  report: (problem: string) => void,
): void {
  if (!Array.isArray(choices)) return report('choices is no list');
  if (isObject(usage) && choices.length > 0) report('usage beside an answer');
  for (const choice of choices as readonly JsonValue[]) {
    if (!isObject(choice) || typeof choice.text !== 'string' || typeof choice.index !== 'number') {
      report('a choice without text or index');
      continue;
    }
    const { index, finish_reason: finish, logprobs } = choice;
    if (logprobs === undefined) report('a choice without logprobs');
    if (answers.get(index) === true) report(`choice ${index} goes on after its end`);
    if (finish !== null && !finishes.has(finish)) report(`finish_reason ${String(finish)}`);
    answers.set(index, finish !== null);
  }
}
