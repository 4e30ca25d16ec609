import assert from 'node:assert/strict';
import { isObject, type JsonValue } from '../../../model/json.ts';
import { Answer, at, callsOf } from '../../../conformance/trial.ts';
import type { Heard } from '../voice.ts';

/** The body of an answer that must be no error. */
export async function answered(answer: Response): Promise<JsonValue> {
  const body = await answer.text();
  assert.equal(answer.status, 200, body);
  return JSON.parse(body) as JsonValue;
}

/** The body of an answer that must be an error. */
export async function refused(answer: Response, status: number): Promise<void> {
  const body = await answer.text();
  assert.equal(answer.status, status, body);
  assert.ok(isObject(at(JSON.parse(body) as JsonValue, 'error')), 'the answer is no error');
}

/** The calls of an answer, or those that a stream was put together to: each tool with its city. */
export function citiesOf(calls: JsonValue | undefined): readonly unknown[] {
  assert.ok(Array.isArray(calls), 'there are no calls');
  return callsOf(calls as readonly JsonValue[]).map(({ name, input }) => ({ name, ...input }));
}

/** The frames of a stream of chat completions. */
export function framesOf(stream: string): readonly JsonValue[] {
  return new Answer(Buffer.from(stream)).frames;
}

/** The text of such a stream. */
export function contentOf(stream: string): string {
  return framesOf(stream)
    .map((frame) => at(frame, 'choices', 0, 'delta', 'content') ?? '')
    .join('');
}

/** All texts that the provider was sent. */
export function textOf({ request }: Heard): string {
  return request.messages
    .flatMap(({ content }) => content.map((block) => (block.type === 'text' ? block.text : '')))
    .join('\n');
}
