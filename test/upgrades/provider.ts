/** A provider of chat completions that counts the calls and tokens that it has answered, for comparison with what gateways record. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Name of its model. */
export const countedModel = 'counted';

/** Bill of a provider. */
export interface Bill {
  calls: number;
  input: number;
  output: number;
}

/** URL of the provider, and its counts. */
export interface CountingProvider {
  readonly url: string;
  readonly bill: Readonly<Bill>;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. Each of its replies tells other numbers of tokens. */
export async function startCountingProvider(): Promise<CountingProvider> {
  const bill: Bill = { calls: 0, input: 0, output: 0 };
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.once('end', () => {
      const input = 10 + (bill.calls % 37);
      const output = 5 + (bill.calls % 23);
      bill.calls += 1;
      bill.input += input;
      bill.output += output;
      const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
      const { stream } = JSON.parse(text) as { readonly stream?: boolean };
      if (stream === true) sendStream(response, usage);
      else sendWhole(response, usage);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bill,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const common = { id: 'chatcmpl-counted', created: 1_700_000_000, model: countedModel };

function sendWhole(response: ServerResponse, usage: object): void {
  const message = { role: 'assistant', content: 'You said something.' };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ ...common, object: 'chat.completion', choices, usage }));
}

function sendStream(response: ServerResponse, usage: object): void {
  const send = (members: object): void =>
    void response.write(
      `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', ...members })}\n\n`,
    );
  const choice = (delta: object, finish: string | null = null): object => ({
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send(choice({ role: 'assistant', content: 'You said ' }));
  setTimeout(() => {
    send(choice({ content: 'something.' }));
    send(choice({}, 'stop'));
    send({ choices: [], usage });
    response.end('data: [DONE]\n\n');
  }, 50);
}
