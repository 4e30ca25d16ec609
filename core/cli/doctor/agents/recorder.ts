/** HTTP proxy between an agent and the gateway that records each request with its status, for `sluice doctor agents`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Lifetime } from '../../../call/lifetime.ts';
import { createServer } from '../../../upstream/node-http.ts';
import { openServices } from '../../../upstream/services.ts';
import type { ServiceAnswer } from '../../../sdk/author/services.ts';
import { isRequestHeader } from '../../../sdk/header-fields.ts';
import { WholeBytes } from '../../../sdk/whole-bytes.ts';

/** One request of an agent, and the status of its response. */
export interface Recorded {
  readonly method: string;
  readonly path: string;
  /** 0 when the gateway sent no response. */
  readonly status: number;
  readonly isStream: boolean;
  readonly hasTools: boolean;
  readonly hasToolResults: boolean;
  /** Message of an error. */
  readonly error?: string;
}

/** A running proxy and its records. */
export interface Recorder {
  readonly url: string;
  readonly requests: readonly Recorded[];
  close(): Promise<void>;
}

/** Maximum size of a request and a response, in bytes, and maximum number of recorded requests. */
const maxBytes = 32 * 1024 * 1024;
const maxRequests = 1_000;

/** Match tools, and results of tools, in requests of the four formats. */
const tools = /"(?:tools|functionDeclarations|additional_tools)"\s*:\s*\[\s*\{|"additional_tools"/;
const toolResults =
  /"role"\s*:\s*"tool"|"type"\s*:\s*"(?:tool_result|function_call_output|custom_tool_call_output)"|"functionResponse"/;

/** Starts a recorder on a free port of this machine. The gateway has `timeoutMs` for each response. */
export async function startRecorder(gateway: string, timeoutMs: number): Promise<Recorder> {
  const services = openServices();
  const requests: Recorded[] = [];
  const lifetime = new Lifetime();

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const body = await bytesOf(request);
    const text = body.toString();
    const summary = {
      method,
      path: url.split('?')[0] ?? url,
      hasTools: tools.test(text),
      hasToolResults: toolResults.test(text),
    };
    const keep = recordOf({ ...summary, status: 0, isStream: false, error: 'no response' });
    let answer: ServiceAnswer;
    try {
      answer = await services.ask({
        url: `${gateway}${url}`,
        method: method as 'GET' | 'POST',
        headers: passedOn(request.headers),
        ...(body.length === 0 ? {} : { body }),
        timeout: timeoutMs,
        signal: lifetime.signal,
        limit: maxBytes,
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      keep({ ...summary, status: 0, isStream: false, error: reason });
      throw error;
    }
    keep({
      ...summary,
      status: answer.status,
      isStream: String(answer.headers['content-type']).startsWith('text/event-stream'),
      ...(answer.status >= 400 ? { error: errorIn(answer.text()) } : {}),
    });
    response.writeHead(answer.status, passedOn(answer.headers));
    response.end(answer.bytes);
  }

  /** Records a running request. The returned function replaces the record by that of the finished request. */
  function recordOf(one: Recorded): (ended: Recorded) => void {
    if (requests.length >= maxRequests) return () => {};
    const index = requests.push(one) - 1;
    return (ended) => {
      requests[index] = ended;
    };
  }

  const server = createServer({}, (request, response) => {
    pass(request, response).catch(() => {
      if (!response.headersSent) response.writeHead(502);
      response.end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      lifetime.end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await services.close();
    },
  };
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const whole = new WholeBytes(maxBytes);
  for await (const piece of request as AsyncIterable<Buffer>) whole.push(piece);
  return whole.take();
}

function passedOn(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || !isRequestHeader(name) ? [] : [[name, String(value)]],
    ),
  );
}

/** Returns the message of an error response in any of the formats. */
function errorIn(text: string): string {
  return (/"message"\s*:\s*"((?:[^"\\]|\\.){0,300})/.exec(text)?.[1] ?? text.slice(0, 300)).replaceAll(
    '\\"',
    '"',
  );
}
