import type { WireFrame } from '../../core/sdk/format.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/model/json.ts';

const finishes: ReadonlySet<unknown> = new Set(['stop', 'length', 'content_filter']);

/** What is illegal in a stream of text completions as its clients read it; empty when nothing is. */
export function checkLegal(frames: WireFrame[]): string[] {
  const problems: string[] = [];
  const answers = new Map<number, boolean>();
  let envelope: string | undefined;
  let over: 'done' | 'error' | undefined;
  for (const [index, frame] of frames.entries()) {
    const say = (problem: string): void => void problems.push(`frame ${index}: ${problem}`);
    if (frame.event !== undefined) say('has an event name');
    if (over !== undefined) say(`comes after ${over}`);
    if ('text' in frame) {
      if (frame.text !== '[DONE]') say(`text ${frame.text}`);
      over = 'done';
      continue;
    }
    const chunk = frame.json;
    if (chunk.error !== undefined) {
      over = 'error';
      if (!isObject(chunk.error) || typeof chunk.error.message !== 'string') say('error has no message');
      continue;
    }
    const { id, object, created, model } = chunk;
    if (typeof id !== 'string' || !/^cmpl-[A-Za-z0-9_-]+$/.test(id)) say(`id ${String(id)}`);
    if (object !== 'text_completion') say(`object ${String(object)}`);
    if (!Number.isInteger(created)) say(`created ${String(created)}`);
    const same = JSON.stringify([id, created, model]);
    envelope ??= same;
    if (same !== envelope) say('id, time or model changed');
    checkChoices(chunk, answers, say);
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
  say: (problem: string) => void,
): void {
  if (!Array.isArray(choices)) return say('choices is no list');
  if (isObject(usage) && choices.length > 0) say('usage beside an answer');
  for (const choice of choices as readonly JsonValue[]) {
    if (!isObject(choice) || typeof choice.text !== 'string' || typeof choice.index !== 'number') {
      say('a choice without text or index');
      continue;
    }
    const { index, finish_reason: finish, logprobs } = choice;
    if (logprobs === undefined) say('a choice without logprobs');
    if (answers.get(index) === true) say(`choice ${index} goes on after its end`);
    if (finish !== null && !finishes.has(finish)) say(`finish_reason ${String(finish)}`);
    answers.set(index, finish !== null);
  }
}
