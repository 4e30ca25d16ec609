import type { ServerResponse } from 'node:http';
import { stripes } from '../../channels/demo/png.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { SeenRequest } from '../support/upstream.ts';

/** A picture of this size. */
export const pngOf = (width: number, height: number): Buffer =>
  stripes(width, height, [
    [9, 9, 9],
    [250, 250, 250],
  ]);
/** A picture. */
export const png = pngOf(256, 256);
/** The same picture, in base64. */
export const base64 = png.toString('base64');

/** The fields and files of a form that a provider got, in their order. */
export async function sent({ headers, body }: SeenRequest): Promise<[string, string | File][]> {
  const type = headers['content-type'] ?? '';
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  return [...form.entries()];
}
/** The JSON that a provider got. */
export const jsonOf = ({ body }: SeenRequest): JsonObject => JSON.parse(body.toString()) as JsonObject;

/** Answers with JSON. */
export function sendJson(response: ServerResponse, body: JsonObject, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
function sendStream(response: ServerResponse, events: readonly JsonObject[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events)
    response.write(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

const usage = {
  input_tokens: 50,
  output_tokens: 100,
  total_tokens: 150,
  input_tokens_details: { text_tokens: 10, image_tokens: 40 },
};
const facts = { size: '1024x1024', quality: 'high', background: 'opaque', output_format: 'png' };
/** An event with the picture in it. */
export const event = (type: string, more: JsonObject = {}): JsonObject => ({
  type,
  b64_json: base64,
  created_at: 1_700_000_000,
  ...facts,
  ...more,
});

/** The address of a file that the same provider gives out. */
const fileOf = ({ headers }: SeenRequest): string => `http://${headers.host}/files/1.png`;

/** Handler of a provider's requests. */
export type Answering = (request: SeenRequest, response: ServerResponse) => void | Promise<void>;

/** Responses of a provider, and its URLs by endpoint. */
interface Provider {
  readonly urls: { readonly [Endpoint in 'generate' | 'edit' | 'vary']?: string };
  /** Undefined where the gateway has to make the stream by itself. */
  readonly streams: boolean;
  readonly answer: Answering;
}

/** Answers as the models of today do. */
export const official: Answering = async (request, response) => {
  const isForm = request.headers['content-type']?.startsWith('multipart/') === true;
  const body = isForm ? Object.fromEntries(await sent(request)) : jsonOf(request);
  const name = request.url.endsWith('/edits') ? 'image_edit' : 'image_generation';
  if (body.stream === true || body.stream === 'true') {
    const sketches = Array.from({ length: Number(body.partial_images ?? 0) }, (_, index) =>
      event(`${name}.partial_image`, { partial_image_index: index }),
    );
    sendStream(response, [...sketches, event(`${name}.completed`, { usage })]);
    return;
  }
  const data = Array.from({ length: Number(body.n ?? 1) }, () => ({ b64_json: base64 }));
  sendJson(response, { created: 1_700_000_000, data, ...facts, usage });
};
/** The older models: addresses unless bytes are asked for, and no usage. */
export const older: Answering = async (request, response) => {
  const isForm = request.headers['content-type']?.startsWith('multipart/') === true;
  const body = isForm ? Object.fromEntries(await sent(request)) : jsonOf(request);
  const one = body.response_format === 'b64_json' ? { b64_json: base64 } : { url: fileOf(request) };
  sendJson(response, {
    created: 1_700_000_000,
    data: Array.from({ length: Number(body.n ?? 1) }, () => one),
  });
};
/** Gives addresses, whatever was asked for. */
export const linked: Answering = (request, response) => {
  sendJson(response, { created: 1_700_000_000, data: [{ url: fileOf(request) }] });
};
/** Answers in contents, with words beside the picture. */
export const contents: Answering = (_, response) => {
  sendJson(response, {
    candidates: [
      {
        content: {
          role: 'model',
          parts: [{ text: 'Here.' }, { inlineData: { mimeType: 'image/png', data: base64 } }],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: {
      promptTokenCount: 50,
      candidatesTokenCount: 100,
      totalTokenCount: 150,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 10 },
        { modality: 'IMAGE', tokenCount: 40 },
      ],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 100 }],
    },
  });
};
/** Answers with predictions. */
export const predicted: Answering = (request, response) => {
  const { sampleCount } = jsonOf(request).parameters as { sampleCount: number };
  const predictions = Array.from({ length: sampleCount }, () => ({
    mimeType: 'image/png',
    bytesBase64Encoded: base64,
  }));
  sendJson(response, { predictions });
};

const openaiUrls = {
  generate: '/v1/images/generations',
  edit: '/v1/images/edits',
  vary: '/v1/images/variations',
};
const content = '/v1beta/models/gemini-2.5-flash-image:generateContent';
const providers: Readonly<Record<string, Provider>> = {
  demo: { urls: { generate: '', edit: '', vary: '' }, streams: true, answer: official },
  'gpt-image-1': { urls: openaiUrls, streams: true, answer: official },
  'dall-e-2': { urls: openaiUrls, streams: false, answer: older },
  links: { urls: openaiUrls, streams: false, answer: linked },
  'gemini-2.5-flash-image': { urls: { generate: content, edit: content }, streams: false, answer: contents },
  'imagen-4.0-generate-001': {
    urls: { generate: '/v1beta/models/imagen-4.0-generate-001:predict' },
    streams: false,
    answer: predicted,
  },
};
/** The providers that can be asked at this endpoint, by their models. */
export const rows = (endpoint: 'generate' | 'edit' | 'vary'): (readonly [string, Provider])[] =>
  Object.entries(providers).filter(([, { urls }]) => urls[endpoint] !== undefined);
