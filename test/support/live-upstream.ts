import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

type Json = Record<string, unknown>;

/** Connection to a fake of Gemini's Live API. */
export interface LiveConnection {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  /** Every message that came, but for the setup. */
  readonly messages: Json[];
  readonly setup: Json;
  readonly closed: Promise<number>;
  send(message: Json): void;
  close(code: number, reason: string): void;
}

export interface LiveUpstream {
  readonly url: string;
  readonly connections: LiveConnection[];
  close(): Promise<void>;
}

const kinds = new Set(['setup', 'clientContent', 'realtimeInput', 'toolResponse']);

/** @google/genai 2.32.0, dist/genai.d.ts, `LiveClientSetup`. Others: "Unknown name … at 'setup'", pydantic-ai-slim 2.68.0, realtime/google.py */
const setupFields = new Set(
  'model generationConfig systemInstruction tools realtimeInputConfig sessionResumption contextWindowCompression inputAudioTranscription outputAudioTranscription historyConfig'.split(
    ' ',
  ),
);

/**
 * A Live API that refuses what the real one refuses, and else does what `script` says. Messages go out as binary ones, as there.
 * `vertex` refuses ids in results of functions: LiteLLM 1.110.2, llms/vertex_ai/realtime/transformation.py
 */
export async function startLive(
  script: (connection: LiveConnection, message: Json) => void,
  { vertex = false }: { readonly vertex?: boolean } = {},
): Promise<LiveUpstream> {
  const connections: LiveConnection[] = [];
  const server = createServer();
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  sockets.on('connection', (socket, request) => {
    const connection = connectionOf(socket, request);
    connections.push(connection);
    let state: 'new' | 'setting up' | 'ready' = 'new';
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Json;
      const refused =
        state === 'new' ? setupRefusal(message) : refusal(message, connection.setup, state, vertex);
      if (refused !== undefined) {
        connection.close(...refused);
        return;
      }
      if (state === 'new') {
        Object.assign(connection.setup, message['setup']);
        state = 'setting up';
        setImmediate(() => {
          state = 'ready';
          connection.send({ setupComplete: {} });
          script(connection, message);
        });
        return;
      }
      connection.messages.push(message);
      script(connection, message);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function connectionOf(socket: WebSocket, request: IncomingMessage): LiveConnection {
  return {
    url: request.url ?? '',
    headers: request.headers,
    messages: [],
    setup: {},
    closed: new Promise((resolve) => socket.once('close', (code) => resolve(code))),
    send: (message) => socket.send(Buffer.from(JSON.stringify(message))),
    close: (code, reason) => socket.close(code, reason),
  };
}

type Refusal = readonly [code: number, reason: string];

const invalid: Refusal = [1007, 'Request contains an invalid argument.'];

function setupRefusal(message: Json): Refusal | undefined {
  const setup = message['setup'] as Json | undefined;
  // "Message to be sent in the first (and only in the first)": BidiGenerateContentSetup of generativelanguage v1beta.
  if (setup === undefined || Object.keys(message).length !== 1) return invalid;
  const strange = Object.keys(setup).find((name) => !setupFields.has(name));
  if (strange !== undefined)
    return [1007, `Invalid JSON payload received. Unknown name "${strange}" at 'setup': Cannot find field.`];
  const { model } = setup;
  const { generationConfig = {}, realtimeInputConfig = {} } = setup as Record<string, Json>;
  // `model`: "Required."
  if (
    typeof model !== 'string' ||
    !/^(models|publishers\/google\/models|projects\/.+\/models)\/[^/]+$/.test(model)
  )
    return invalid;
  // 1008 for an unknown model: pydantic-ai-slim 2.68.0, realtime/google.py
  if (!/live|native-audio/.test(model))
    return [
      1008,
      `${String(model)} is not found for API version v1beta, or is not supported for bidiGenerateContent.`,
    ];
  // One modality: https://pkg.go.dev/github.com/AltairaLabs/PromptKit/runtime/providers/gemini
  if ((generationConfig['responseModalities'] as unknown[]).length !== 1) return invalid;
  // No other setting beside `disabled`: LiteLLM 1.110.2, llms/gemini/realtime/transformation.py
  const detection = (realtimeInputConfig['automaticActivityDetection'] ?? {}) as Json;
  if (detection['disabled'] === true && Object.keys(detection).length > 1) return invalid;
  // pydantic-ai-slim 2.68.0, realtime/google.py
  if (model.includes('extended-thinking') && generationConfig['thinkingConfig'] === undefined)
    return [1007, 'Thinking level must be specified for this model'];
  return undefined;
}

function refusal(message: Json, setup: Json, state: string, vertex: boolean): Refusal | undefined {
  // "Clients should wait for a BidiGenerateContentSetupComplete message before sending any additional messages."
  if (state !== 'ready' || message['setup'] !== undefined) return invalid;
  // "exactly one of the fields": https://ai.google.dev/api/live
  const [kind = '', second] = Object.keys(message);
  if (!kinds.has(kind) || second !== undefined) return invalid;
  const { clientContent, realtimeInput, toolResponse } = message as Record<string, Json | undefined>;
  for (const { role, parts } of (clientContent?.['turns'] ?? []) as { role: string; parts: Json[] }[]) {
    // A turn of the role `system` is refused: livekit-plugins-google 1.8.9, realtime/realtime_api.py
    if (role !== 'user' && role !== 'model') return invalid;
    // pydantic-ai-slim 2.68.0, realtime/google.py, `_seed_request_parts`
    const sounds = parts.map((part) => (part['inlineData'] as Json | undefined)?.['mimeType']);
    if (sounds.some((type) => String(type).startsWith('audio/') && type !== 'audio/pcm;rate=16000'))
      return [1008, 'Operation is not implemented, or supported, or enabled.'];
  }
  const { realtimeInputConfig = {} } = setup as Record<string, Json>;
  const isManual =
    (realtimeInputConfig['automaticActivityDetection'] as Json | undefined)?.['disabled'] === true;
  // @google/genai 2.32.0, dist/genai.d.ts: signals of activity where detection is disabled, `audioStreamEnd` where it is enabled.
  const isSignal =
    realtimeInput?.['activityStart'] !== undefined || realtimeInput?.['activityEnd'] !== undefined;
  if ((isSignal && !isManual) || (realtimeInput?.['audioStreamEnd'] !== undefined && isManual))
    return invalid;
  const results = (toolResponse?.['functionResponses'] ?? []) as Json[];
  if (
    results.some(
      ({ id, name, response }) =>
        (vertex ? id !== undefined : typeof id !== 'string') ||
        typeof name !== 'string' ||
        typeof response !== 'object',
    )
  )
    return invalid;
  return undefined;
}
