import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

/** What becomes of a call. `breaks` and `leaves` are streams; `gives-up` leaves before there is an answer. */
export const fates = ['fine', 'fails', 'breaks', 'leaves', 'gives-up'] as const;
export type Fate = (typeof fates)[number];

/** The most output tokens that a call asks for and gets. */
export const mostOutput = 40;

/** The provider of a race: each request's text says `call-NUMBER-FATE`. It is slow enough that all calls run at the same time. */
export function startProvider(): Promise<ScriptedUpstream> {
  return startUpstream(async (request, response) => {
    const { number, fate } = meaningOf(request);
    response.on('error', () => {});
    if (fate === 'fails') {
      await setTimeout(20 + (number % 50));
      response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"No."}}');
      return;
    }
    if (fate === 'gives-up') await setTimeout(5_000, undefined, { ref: false });
    const output = 10 + (number % (mostOutput - 9));
    const usage = { prompt_tokens: 8, completion_tokens: output, total_tokens: 8 + output };
    if (/"stream":\s*true/.test(request.body.toString())) await stream(response, output, fate, usage);
    else {
      await setTimeout(100 + (number % 200));
      const message = { role: 'assistant', content: words(output) };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }));
    }
  });
}

function meaningOf({ body }: SeenRequest): { readonly number: number; readonly fate: Fate } {
  const [, number = '0', name = ''] = /call-(\d+)-([a-z-]+)/.exec(body.toString()) ?? [];
  return { number: Number(number), fate: fates.find((fate) => fate === name) ?? 'fine' };
}

const words = (count: number): string => ' tok'.repeat(count);

async function stream(response: ServerResponse, output: number, fate: Fate, usage: object): Promise<void> {
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
  response.end(`${chunk([], { usage })}data: [DONE]\n\n`);
}
