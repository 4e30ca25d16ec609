import { parseObject } from '../json/parse.ts';
import { redact } from '../formats/_shared/redact.ts';

/** Members with the error message in responses of services for credentials, lists and documents: RFC 6749, IBM Cloud IAM, and others. */
const members = ['error_description', 'errorMessage', 'message', 'detail', 'error'] as const;

/** Returns the error of a document that the service did not return. Its cause is the message of the service, for operators only. */
export function refusedRead(status: number, body: Buffer): Error {
  const sentence = `The response has the status ${status}.`;
  const object = parseObject(body.toString());
  const words = members
    .map((name) => object?.[name])
    .find((value) => typeof value === 'string' && value !== '');
  if (typeof words !== 'string') return new Error(sentence);
  return new Error(sentence, { cause: new Error(redact(words)) });
}
