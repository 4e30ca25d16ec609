import { randomInt } from 'node:crypto';
import { request as send } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { mostOutput, tried, type Fate, type RacingProvider } from './provider.ts';

/** Response as a caller saw it. */
export interface Seen {
  /** 0 when there was no answer. */
  readonly status: number;
  /** The call's id in the usage log, where an answer told it. */
  readonly id: string | undefined;
  /** `performance.now()` when its answer had been read to the end; undefined when it was not. */
  readonly deliveredAt: number | undefined;
}

/** By what a call is attributed. */
export interface CallAttribution {
  readonly endUser?: string;
  readonly tags?: string;
}

const alphabet = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** Letters of which no tokenizer makes words; those who leave early have had much read to their provider. */
function promptOf(number: number, fate: Fate): string {
  const length = fate === 'gives-up' ? 2_000 : 100;
  const letters = Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
  return `call-${number}-${fate} ${letters}`;
}

function bodyOf(number: number, fate: Fate, stream: boolean, named: object): object {
  const content = promptOf(number, fate);
  if (fate === 'best')
    return { model: 'race-text', prompt: content, max_tokens: mostOutput, best_of: tried, ...named };
  const limits =
    fate === 'both'
      ? { max_tokens: mostOutput, max_completion_tokens: mostOutput / 4 }
      : { max_tokens: mostOutput };
  return { model: 'race-m', stream, ...limits, messages: [{ role: 'user', content }], ...named };
}

/** One call: a third of them in another format than the provider's. */
export function makeCall(
  url: string,
  key: string,
  { number, stream, fate }: { readonly number: number; readonly stream: boolean; readonly fate: Fate },
  provider: RacingProvider,
  { endUser, tags }: CallAttribution = {},
): Promise<Seen> {
  const foreign = number % 3 === 0 && fate !== 'best' && fate !== 'both';
  const path = fate === 'best' ? '/v1/completions' : foreign ? '/v1/messages' : '/v1/chat/completions';
  const named = endUser === undefined ? {} : foreign ? { metadata: { user_id: endUser } } : { user: endUser };
  return new Promise((resolve) => {
    const request = send(new URL(path, url), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(foreign ? { 'anthropic-version': '2023-06-01' } : {}),
        ...(tags === undefined ? {} : { 'x-sluice-tags': tags }),
      },
      agent: false,
    });
    let seen: Seen = { status: 0, id: undefined, deliveredAt: undefined };
    const done = (): void => resolve(seen);
    request.on('error', done);
    request.on('response', (response) => {
      const { 'x-request-id': id, 'request-id': other } = response.headers;
      seen = {
        status: response.statusCode ?? 0,
        id: [id, other].flat().find((one) => one?.startsWith('req_')),
        deliveredAt: undefined,
      };
      response.on('error', () => {});
      response.on('end', () => (seen = { ...seen, deliveredAt: performance.now() }));
      response.on('close', done);
      response.on('data', () => {
        if (fate === 'leaves') void setTimeout(20).then(() => request.destroy());
      });
    });
    request.on('close', done);
    if (fate === 'gives-up') void provider.waitForRequest(number).then(() => request.destroy());
    request.end(JSON.stringify(bodyOf(number, fate, stream, named)));
  });
}
