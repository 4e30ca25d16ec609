import { parseObject } from '../json/parse.ts';
import { redact } from '../formats/_shared/redact.ts';

/** Members in which services that give credentials, lists or documents say what is wrong: RFC 6749, IBM Cloud IAM, and others. */
const members = ['error_description', 'errorMessage', 'message', 'detail', 'error'] as const;

/** Returns the error of a document that was refused. What the service says is its cause, for operators alone. */
export function refusedRead(status: number, body: Buffer): Error {
  const sentence = `The response has the status ${status}.`;
  const object = parseObject(body.toString());
  const words = members
    .map((name) => object?.[name])
    .find((value) => typeof value === 'string' && value !== '');
  if (typeof words !== 'string') return new Error(sentence);
  return new Error(sentence, { cause: new Error(redact(words)) });
}
