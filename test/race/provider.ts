import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/**
 * What becomes of a call. `breaks` and `leaves` are streams; `gives-up` leaves before there is an answer; `untold` gets no word about usage;
 * `both` names two limits and gets the larger; `best` is a text completion of which the best of several is taken; `ignores` gets more than
 * it has asked for.
 */
export const fates = [
  'fine',
  'fails',
  'breaks',
  'leaves',
  'gives-up',
  'untold',
  'both',
  'best',
  'ignores',
] as const;
export type Fate = (typeof fates)[number];

/** The most output tokens that a call asks for, and gets unless its provider ignores that. */
export const mostOutput = 40;

/** Number of choices of which the best is taken. */
export const tried = 5;

/** Provider of a race, which counts output beyond the requested limits. */
export interface RacingProvider extends Pick<ScriptedUpstream, 'url' | 'close'> {
  readonly beyond: number;
  /** Resolves when the call with this number is received next. */
  waitForRequest(number: number): Promise<void>;
}

/**
 * Each request's text says `call-NUMBER-FATE`. It counts as the largest provider does, and is slow enough that all calls run at the same
 * time.
 */
export async function startProvider(): Promise<RacingProvider> {
  let beyond = 0;
  const waiting = new Map<number, () => void>();
  const { url, close } = await startUpstream(async (request, response) => {
    const { number, fate, input } = meaningOf(request);
    waiting.get(number)?.();
    response.on('error', () => {});
    if (fate === 'fails') {
      await setTimeout(20 + (number % 50));
      response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"No."}}');
      return;
    }
    if (fate === 'gives-up') await setTimeout(5_000, undefined, { ref: false });
    const answers = fate === 'best' ? tried : 1;
    const output = fate === 'ignores' ? 3 * mostOutput : answers * outputOf(number, fate);
    beyond += Math.max(0, output - answers * mostOutput);
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    const usageField = fate === 'untold' ? {} : { usage };
    if (/"stream":\s*true/.test(request.body.toString())) await stream(response, output, fate, usageField);
    else {
      await setTimeout(100 + (number % 200));
      const content = words(output / answers);
      const choice = fate === 'best' ? { text: content } : { message: { role: 'assistant', content } };
      const choices = [{ index: 0, ...choice, finish_reason: 'stop' }];
      const object = fate === 'best' ? 'text_completion' : 'chat.completion';
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: 'c', object, created: 1, model: 'm', choices, ...usageField }));
    }
  });
  return {
    url,
    close,
    get beyond() {
      return beyond;
    },
    waitForRequest: (number) => new Promise((resolve) => void waiting.set(number, resolve)),
  };
}

function outputOf(number: number, fate: Fate): number {
  return fate === 'both' ? mostOutput : 10 + (number % (mostOutput - 9));
}

function meaningOf({ body }: SeenRequest): {
  readonly number: number;
  readonly fate: Fate;
  readonly input: number;
} {
  const [text, number = '0', name = ''] = /call-(\d+)-([a-z-]+)[^"]*/.exec(body.toString()) ?? [''];
  // Eight tokens around the words, of which one is the assistant's turn.
  return {
    number: Number(number),
    fate: fates.find((fate) => fate === name) ?? 'fine',
    input: countTokens(text) + 7,
  };
}

const words = (count: number): string => ' tok'.repeat(count);

async function stream(
  response: ServerResponse,
  output: number,
  fate: Fate,
  usageField: object,
): Promise<void> {
  const chunk = (choices: object[], more: object = {}): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
  const delta = (content: string): string => chunk([{ index: 0, delta: { content }, finish_reason: null }]);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let sent = 0; sent < output; sent += 5) {
    if (response.destroyed) return;
    response.write(delta(words(Math.min(5, output - sent))));
    if (fate === 'breaks' && sent > output / 2) {
      response.destroy();
      return;
    }
    await setTimeout(fate === 'leaves' ? 100 : 30);
  }
  response.write(chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]));
  if ('usage' in usageField) response.write(chunk([], usageField));
  response.end('data: [DONE]\n\n');
}
