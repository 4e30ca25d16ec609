import type { ServerResponse } from 'node:http';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import {
  formatVoice,
  startUpstream,
  type ScriptedUpstream,
  type SeenRequest,
  type Voice,
} from 'sluice/testing';
import { awsHeaders } from '../../channels/_kit/identity/aws-signature.ts';
import { eventStreamType } from '../../core/formats/_shared/event-stream.ts';

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text),
);
const header = (value: string): { type: 'string'; value: string } => ({ type: 'string', value });

/** A PayloadPart of InvokeEndpointWithResponseStream: @aws-sdk/client-sagemaker-runtime 3.1164.0, schemas/schemas_0, `PayloadPart`. */
export const payloadPart = (body: Buffer): Buffer =>
  Buffer.from(
    codec.encode({
      headers: {
        ':message-type': header('event'),
        ':event-type': header('PayloadPart'),
        ':content-type': header('application/octet-stream'),
      },
      body,
    }),
  );

/** Parts that end wherever they end: inside events, and inside characters. */
export const payloadParts = (body: Buffer, size: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(body.length / size) }, (_, at) =>
    payloadPart(body.subarray(at * size, (at + 1) * size)),
  );

/** An exception inside a stream: the same package, models/errors, `ModelStreamError`. */
export const modelStreamError = (message: string, code: string): Buffer =>
  Buffer.from(
    codec.encode({
      headers: { ':message-type': header('exception'), ':exception-type': header('ModelStreamError') },
      body: Buffer.from(JSON.stringify({ Message: message, ErrorCode: code })),
    }),
  );

/** State of the fake: inference components of each endpoint, and keys of its account. */
export interface Account {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
  readonly endpoints: Readonly<Record<string, readonly string[]>>;
}

type Script = (request: SeenRequest, response: ServerResponse) => void;

/** Starts an account of SageMaker, which refuses what SageMaker refuses and has its containers answer the rest. */
export function startSageMaker(account: Account, container: Script): Promise<ScriptedUpstream> {
  return startUpstream(async (request, response) => {
    const refusal = (await wrongSignature(request, account)) ?? wrongEndpoint(request, account);
    if (refusal === undefined) {
      container(request, response);
      return;
    }
    const { status, type, message } = refusal;
    response
      .writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type })
      .end(JSON.stringify(status === 403 ? { message } : { Message: message }));
  });
}

interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html */
async function wrongSignature(
  { url, headers, body }: SeenRequest,
  { accessKeyId, secretAccessKey, region }: Account,
): Promise<Refusal | undefined> {
  const given = headers.authorization ?? '';
  const [, id, date, where, service, names = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=/.exec(
      given,
    ) ?? [];
  const refused = (type: string, message: string): Refusal => ({ status: 403, type, message });
  if (id === undefined) return refused('MissingAuthenticationTokenException', 'Missing Authentication Token');
  if (id !== accessKeyId)
    return refused('UnrecognizedClientException', 'The security token included in the request is invalid.');
  if (service !== 'sagemaker' || where !== region)
    return refused('InvalidSignatureException', 'Credential should be scoped to correct service: sagemaker.');
  const stamp = String(headers['x-amz-date']);
  const at = new Date(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  const signed = names
    .split(';')
    .filter((name) => !['host', 'x-amz-date', 'x-amz-content-sha256'].includes(name));
  const own = Object.fromEntries(signed.map((name) => [name, String(headers[name])]));
  const { authorization } = await awsHeaders(
    { method: 'POST', url: new URL(url, `http://${headers.host}`), headers: own, body },
    { accessKeyId, secretAccessKey },
    { service: 'sagemaker', region, at },
  );
  const isHeld = Math.abs(Date.now() - at.getTime()) < 5 * 60_000 && stamp.startsWith(date ?? '-');
  // What chooses the container must not be changed on the way.
  const isWhole =
    headers['x-amzn-sagemaker-inference-component'] === undefined || names.includes('inference-component');
  if (authorization === given && isHeld && isWhole) return undefined;
  return refused(
    'InvalidSignatureException',
    'The request signature we calculated does not match the signature you provided.',
  );
}

function wrongEndpoint({ url, headers }: SeenRequest, { endpoints }: Account): Refusal | undefined {
  const [, name = ''] = /^\/endpoints\/([^/]+)\/invocations(?:-response-stream)?$/.exec(url) ?? [];
  const components = endpoints[decodeURIComponent(name)];
  const refused = (message: string): Refusal => ({ status: 400, type: 'ValidationError', message });
  // github:aws/amazon-sagemaker-examples#293
  if (components === undefined) return refused(`Endpoint ${name} of account 123456789012 not found.`);
  const component = headers['x-amzn-sagemaker-inference-component'];
  // LiteLLM 1.110.2, llms/sagemaker/common_utils.py, `with_inference_component_hint`
  if (components.length > 0 && component === undefined)
    return refused('Inference Component Name header is required for endpoints with inference components.');
  if (components.length === 0 && component !== undefined)
    return refused(
      'Inference Component Name header is not allowed for endpoints without inference components.',
    );
  if (component !== undefined && !components.includes(String(component)))
    return refused(`Inference Component ${String(component)} of account 123456789012 not found.`);
  return undefined;
}

const chat = await formatVoice('chat-completions');
/** The container knows its model by itself. */
const named = (request: SeenRequest): SeenRequest => ({
  ...request,
  body: Buffer.from(
    JSON.stringify({ model: 'container', ...(JSON.parse(request.body.toString()) as object) }),
  ),
});

/** A container that speaks chat completions, behind SageMaker. */
export const sagemakerVoice: Voice = {
  ...chat,
  streamType: eventStreamType,
  hear: (request) => chat.hear(named(request)),
  whole: (events, request) => chat.whole(events, named(request)),
  stream(events, request) {
    const { pieces, end } = chat.stream(events, named(request));
    const framed = (piece: string | Buffer): Buffer => Buffer.concat(payloadParts(Buffer.from(piece), 41));
    return { pieces: pieces.map(framed), end: framed(end) };
  },
  error: (_status, message) => JSON.stringify({ Message: message }),
};
