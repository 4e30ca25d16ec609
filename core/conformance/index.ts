/** All trials of a channel, and how one is run against a gateway. */
import { setTimeout as pause } from 'node:timers/promises';
import { chatTrials } from './chat.ts';
import { otherTrials } from './others.ts';
import { toolTrials } from './tools.ts';
import { Answer, Differs, Refused, type Asking, type Trial } from './trial.ts';
import { parseObject } from '../json/parse.ts';
import type { JsonObject } from '../model/json.ts';

export type { Trial } from './trial.ts';

/** All trials of channels, in the order of the output. */
export const trials: readonly Trial[] = [...chatTrials, ...toolTrials, ...otherTrials];

/** Result of one trial. */
export interface Finding {
  readonly result: 'holds' | 'differs' | 'refused';
  /** Difference, or error message of the provider. */
  readonly remark: string;
}

/** A gateway with the channel under trial, and the parameters of requests to it. */
export interface TrialTarget {
  readonly url: string;
  readonly key: string;
  /** Public names: a model of the channel, and one that its provider does not have. */
  readonly model: string;
  readonly stranger: string;
  /** The format of chats that the channel speaks first. */
  readonly format: string;
  /** Maximum time to wait for a retry that the provider requests, in milliseconds. Default: a minute. */
  readonly patience?: number;
}

/** Maximum number of retries for an overloaded provider. */
const again = 3;

/** Runs one trial on a channel. Never rejects. */
export async function tryOut({ run }: Trial, target: TrialTarget): Promise<Finding> {
  try {
    await run(askingAt(target));
    return { result: 'holds', remark: '' };
  } catch (error) {
    if (error instanceof Differs) return { result: 'differs', remark: error.message };
    const { message, cause } = error as Error;
    const behind = cause instanceof Error ? `: ${cause.message}` : '';
    return { result: 'refused', remark: error instanceof Refused ? message : `${message}${behind}` };
  }
}

function askingAt({ url, key, model, stranger, format, patience = 60_000 }: TrialTarget): Asking {
  const look = async (path: string, body: JsonObject | FormData): Promise<Response> => {
    for (let attempt = 1; ; attempt += 1) {
      // One request after the other: a provider's limits are not what is tried.
      // oxlint-disable-next-line no-await-in-loop
      const answer = await fetch(url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          ...(path.startsWith('/v1/messages') ? { 'anthropic-version': '2023-06-01' } : {}),
          ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
        },
        body: body instanceof FormData ? body : JSON.stringify(body),
      });
      const wait = Number(answer.headers.get('retry-after') ?? 1) * 1000;
      if (answer.status !== 429 || attempt > again || wait > patience) return answer;
      // oxlint-disable-next-line no-await-in-loop
      await answer.arrayBuffer();
      // oxlint-disable-next-line no-await-in-loop
      await pause(wait);
    }
  };
  return {
    model,
    stranger,
    format,
    look,
    async request(path, body) {
      const answer = await look(path, body);
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status !== 200) throw new Refused(`${answer.status}: ${sentenceOf(bytes.toString())}`);
      return new Answer(bytes);
    },
  };
}

/** Returns the message of an error in one line. */
function sentenceOf(body: string): string {
  const error = parseObject(body)?.['error'];
  const message = (error as { readonly message?: unknown } | undefined)?.message;
  return (typeof message === 'string' ? message : body).replaceAll(/\s+/g, ' ').slice(0, 160);
}
