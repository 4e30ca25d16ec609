import type { ServerResponse } from 'node:http';
import { Busboy } from '@fastify/busboy';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

type Config = Parameters<typeof startGateway>[0];

/** Response of a scripted provider. */
export interface ProviderResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes, or a value that is sent as JSON. */
  readonly body?: unknown;
}

/** A scripted provider, and a gateway in front of it. */
export class Provider {
  readonly requests: SeenRequest[];
  readonly gateway: TestGateway;
  /** Returns the response to a request; `undefined`: never responds. */
  script: (
    request: SeenRequest,
    count: number,
  ) => ProviderResponse | undefined | Promise<ProviderResponse | undefined> = () => ({
    status: 500,
  });
  readonly #upstream: ScriptedUpstream;

  private constructor(upstream: ScriptedUpstream, gateway: TestGateway) {
    this.#upstream = upstream;
    this.gateway = gateway;
    this.requests = upstream.requests;
  }

  /** `config` receives the provider's URL. */
  static async start(config: (url: string) => Config): Promise<Provider> {
    let provider: Provider | undefined;
    const upstream = await startUpstream(async (request, response, count) => {
      const scripted = await provider?.script(request, count);
      if (scripted !== undefined) answer(response, scripted);
    });
    provider = new Provider(
      upstream,
      await startGateway({ health: { enabled: false }, ...config(upstream.url) }),
    );
    return provider;
  }

  /** Clears the requests and sets the script. */
  says(script: Provider['script']): void {
    this.requests.length = 0;
    this.script = script;
  }

  /** `METHOD path` of all requests, in order. */
  get paths(): readonly string[] {
    return this.requests.map(({ method, url }) => `${method} ${url}`);
  }

  /** Posts a request of any format to the gateway, with its key. */
  post(path: string, body: unknown): Promise<Response> {
    return fetch(this.gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.gateway.key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body: JSON.stringify(body),
    });
  }

  /** Returns the JSON body of the nth POST to the provider; a negative index counts from the last. */
  posted(index = 0): Record<string, unknown> {
    const request = this.requests.filter(({ method }) => method === 'POST').at(index);
    if (request === undefined) throw new Error('There was no such POST.');
    return sentJson(request);
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.#upstream.close();
  }
}

/** A stream of server-sent events, each named by its `type` where it has one; `end` is its last word. */
export function sse(events: readonly object[], end = ''): ProviderResponse {
  const frames = events.map((event) => {
    const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  return { headers: { 'content-type': 'text/event-stream' }, body: Buffer.from(frames.join('') + end) };
}

/** A stream of lines of JSON. */
export function ndjson(lines: readonly object[]): ProviderResponse {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  return { headers: { 'content-type': 'application/x-ndjson' }, body: Buffer.from(text) };
}

function answer(response: ServerResponse, { status = 200, headers = {}, body }: ProviderResponse): void {
  const isBytes = Buffer.isBuffer(body);
  const type = isBytes ? 'application/octet-stream' : 'application/json';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(isBytes ? body : body === undefined ? '' : JSON.stringify(body));
}

/** The JSON of a request. */
export function sentJson({ body }: SeenRequest): Record<string, unknown> {
  return JSON.parse(body.toString()) as Record<string, unknown>;
}

/** A form that a provider was sent. */
export interface SentForm {
  readonly fields: Readonly<Record<string, string>>;
  readonly files: Readonly<
    Record<string, { readonly name: string; readonly type: string; readonly bytes: Buffer }>
  >;
}

/** The form of a request. */
export function sentForm({ headers, body }: SeenRequest): Promise<SentForm> {
  return new Promise((resolve, reject) => {
    const parser = new Busboy({ headers: { 'content-type': headers['content-type'] ?? '' } });
    const fields: Record<string, string> = {};
    const files: Record<string, SentForm['files'][string]> = {};
    parser.on('field', (name, value) => void (fields[name] = value));
    parser.on('file', (field, stream, name, _encoding, type) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => (files[field] = { name: name ?? '', type, bytes: Buffer.concat(chunks) }));
    });
    parser.on('finish', () => resolve({ fields, files }));
    parser.on('error', reject);
    parser.end(body);
  });
}

/** Returns the error of a refused call, as the client's SDK throws it. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ readonly status?: number; readonly code?: string | null; readonly message: string }> {
  try {
    await call;
  } catch (error) {
    return error as { status: number; code: string; message: string };
  }
  throw new Error('It was not refused.');
}
