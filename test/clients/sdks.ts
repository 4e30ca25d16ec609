import Anthropic from '@anthropic-ai/sdk';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI, { AzureOpenAI } from 'openai';

type GoogleAuthOptions = NonNullable<
  NonNullable<ConstructorParameters<typeof GoogleGenAI>[0]>['googleAuthOptions']
>;

/** The wire dialects whose SDKs can be watched on the wire, by the gateway's names. */
export const formats = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;
export type FormatName = (typeof formats)[number];
/** With the one whose SDK has a transport of its own. */
export type ChatFormatName = FormatName | 'converse';

/** One HTTP exchange of an SDK, as it went over the wire. */
export interface Exchange {
  readonly url: string;
  readonly requestHeaders: Headers;
  readonly requestBody: string;
  readonly status: number;
  readonly headers: Headers;
  /** The bytes of the answer; waits for its end. */
  readonly body: Promise<Buffer>;
}

/** A `fetch` for an SDK that keeps what went over the wire: the SDKs hide most headers and all bytes. */
export class Recorder {
  readonly exchanges: Exchange[] = [];

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    const body = response
      .clone()
      .arrayBuffer()
      .then((bytes) => Buffer.from(bytes));
    body.catch(() => {});
    this.exchanges.push({
      url: input instanceof Request ? input.url : String(input),
      requestHeaders: new Headers(init?.headers),
      requestBody: typeof init?.body === 'string' ? init.body : '',
      status: response.status,
      headers: response.headers,
      body,
    });
    return response;
  };

  /** The latest exchange. */
  get last(): Exchange {
    const last = this.exchanges.at(-1);
    if (last === undefined) throw new Error('The SDK has sent nothing.');
    return last;
  }
}

/** URL and key with which an SDK calls the gateway. */
export interface Access {
  readonly url: string;
  readonly key: string;
}

interface Options {
  readonly recorder?: Recorder;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default 0: a test sees every answer. */
  readonly retries?: number;
}

/** The official `openai` client. */
export function openai({ url, key }: Access, { recorder, headers, retries = 0 }: Options = {}): OpenAI {
  return new OpenAI({
    baseURL: `${url}/v1`,
    apiKey: key,
    maxRetries: retries,
    logLevel: 'off',
    ...(headers === undefined ? {} : { defaultHeaders: headers }),
    ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
  });
}

/** The official `@anthropic-ai/sdk` client: Bearer and version 2026-10-21. */
export function anthropic({ url, key }: Access, { recorder, headers, retries = 0 }: Options = {}): Anthropic {
  return new Anthropic({
    baseURL: url,
    apiKey: key,
    maxRetries: retries,
    logLevel: 'off',
    ...(headers === undefined ? {} : { defaultHeaders: headers }),
    ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
  });
}

/** The same SDK sending what Claude Code and older clients send: `x-api-key` and version 2023-06-01. */
export function olderAnthropic(
  { url, key }: Access,
  { recorder, headers, retries = 0 }: Options = {},
): Anthropic {
  return new Anthropic({
    baseURL: url,
    apiKey: key,
    maxRetries: retries,
    logLevel: 'off',
    defaultHeaders: { authorization: null, 'x-api-key': key, 'anthropic-version': '2023-06-01', ...headers },
    ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
  });
}

/** The official `@google/genai` client; `apiVersion` undefined means the SDK's own default, `v1`. */
export function genai(
  { url, key }: Access,
  { recorder, headers, apiVersion }: Options & { readonly apiVersion?: string } = {},
): GoogleGenAI {
  return new GoogleGenAI({
    apiKey: key,
    ...(apiVersion === undefined ? {} : { apiVersion }),
    httpOptions: {
      baseUrl: url,
      ...(headers === undefined ? {} : { headers: { ...headers } }),
      ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
    },
  });
}

/** The official client of Azure OpenAI, for which the gateway is a resource's endpoint. */
export function azureOpenai(
  { url, key }: Access,
  { recorder, deployment }: Options & { readonly deployment?: string } = {},
): AzureOpenAI {
  return new AzureOpenAI({
    endpoint: url,
    apiKey: key,
    apiVersion: '2025-04-01-preview',
    maxRetries: 0,
    logLevel: 'off',
    ...(deployment === undefined ? {} : { deployment }),
    ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
  });
}

/**
 * `@google/genai` for Vertex AI: with a project, also with an auth client of Google's that gives the key as a token, or in express mode. An
 * API key is not exchanged for a token of Google's.
 */
export function vertexGenai(
  { url, key }: Access,
  mode: 'project' | 'token' | 'express',
  { recorder }: Options = {},
): GoogleGenAI {
  const getRequestHeaders = () => Promise.resolve(new Headers({ authorization: `Bearer ${key}` }));
  // The type is that of a whole client, of which the SDK uses this member.
  const authClient = { getRequestHeaders } as unknown as NonNullable<GoogleAuthOptions['authClient']>;
  return new GoogleGenAI({
    vertexai: true,
    ...(mode === 'token' ? { googleAuthOptions: { authClient } } : { apiKey: key }),
    ...(mode === 'express' ? {} : { project: 'my-project', location: 'europe-west1' }),
    httpOptions: { baseUrl: url, ...(recorder === undefined ? {} : { fetch: recorder.fetch }) },
  });
}

/**
 * The official client for Claude on Vertex AI. It asks an auth client of Google's for a token before each request: this one gives the
 * gateway's key.
 */
export function anthropicVertex({ url, key }: Access, { recorder }: Options = {}): AnthropicVertex {
  const authClient = {
    projectId: 'my-project',
    getRequestHeaders: () => Promise.resolve(new Headers({ authorization: `Bearer ${key}` })),
  };
  return new AnthropicVertex({
    baseURL: `${url}/v1`,
    region: 'europe-west1',
    // The type is that of a whole client, of which the SDK uses these two members.
    authClient: authClient as unknown as NonNullable<
      NonNullable<ConstructorParameters<typeof AnthropicVertex>[0]>['authClient']
    >,
    maxRetries: 0,
    logLevel: 'off',
    ...(recorder === undefined ? {} : { fetch: recorder.fetch }),
  });
}
