import { request as send } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { mostOutput, type Fate } from './provider.ts';

/** What a caller saw. */
export interface Seen {
  /** 0 when there was no answer. */
  readonly status: number;
  /** The call's id in the usage log, where an answer told it. */
  readonly id: string | undefined;
}

/** One call: a third of them in another format than the provider's. */
export function makeCall(
  url: string,
  key: string,
  number: number,
  stream: boolean,
  fate: Fate,
): Promise<Seen> {
  const messages = [{ role: 'user', content: `call-${number}-${fate}` }];
  const body = { model: 'race-m', stream, max_tokens: mostOutput, messages };
  const foreign = number % 3 === 0;
  return new Promise((resolve) => {
    const request = send(new URL(foreign ? '/v1/messages' : '/v1/chat/completions', url), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(foreign ? { 'anthropic-version': '2023-06-01' } : {}),
      },
      agent: false,
    });
    let seen: Seen = { status: 0, id: undefined };
    const done = (): void => resolve(seen);
    request.on('error', done);
    request.on('response', (response) => {
      const { 'x-request-id': id, 'request-id': other } = response.headers;
      seen = {
        status: response.statusCode ?? 0,
        id: [id, other].flat().find((one) => one?.startsWith('req_')),
      };
      response.on('error', () => {});
      response.on('close', done);
      response.on('data', () => {
        if (fate === 'leaves') void setTimeout(20).then(() => request.destroy());
      });
    });
    request.on('close', done);
    request.end(JSON.stringify(body));
    if (fate === 'gives-up') void setTimeout(400).then(() => request.destroy());
  });
}
