/** Assertions on responses of the gateway in tests of channels, and accessors for their content. */
import assert from 'node:assert/strict';
import { isObject, type JsonValue } from '../../../model/json.ts';
import { Answer, at, callsOf } from '../../../conformance/trial.ts';
import type { ReceivedRequest } from '../voice.ts';

/** Asserts the status 200 and returns the body. */
export async function answered(answer: Response): Promise<JsonValue> {
  const body = await answer.text();
  assert.equal(answer.status, 200, body);
  return JSON.parse(body) as JsonValue;
}

/** Asserts the status and an `error` member in the body. */
export async function refused(answer: Response, status: number): Promise<void> {
  const body = await answer.text();
  assert.equal(answer.status, status, body);
  assert.ok(isObject(at(JSON.parse(body) as JsonValue, 'error')), 'the answer is no error');
}

/** Returns the tool calls of a response, or of an assembled stream: the name of each tool with its arguments. */
export function citiesOf(calls: JsonValue | undefined): readonly unknown[] {
  assert.ok(Array.isArray(calls), 'there are no calls');
  return callsOf(calls as readonly JsonValue[]).map(({ name, input }) => ({ name, ...input }));
}

/** Returns the frames of a stream of chat completions. */
export function framesOf(stream: string): readonly JsonValue[] {
  return new Answer(Buffer.from(stream)).frames;
}

/** Returns the text of such a stream. */
export function contentOf(stream: string): string {
  return framesOf(stream)
    .map((frame) => at(frame, 'choices', 0, 'delta', 'content') ?? '')
    .join('');
}

/** Returns all texts of the request that the fake provider received. */
export function textOf({ request }: ReceivedRequest): string {
  return request.messages
    .flatMap(({ content }) => content.map((block) => (block.type === 'text' ? block.text : '')))
    .join('\n');
}
