import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type ServerOptions, type WebSocket } from 'ws';

/** Session at a scripted provider. */
export interface SeenSession {
  readonly socket: WebSocket;
  /** With query. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  /** Every message that came, in order. */
  readonly messages: { readonly data: Buffer; readonly binary: boolean }[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(event: unknown): void;
}

/** A provider of sessions that does what a test says. */
export interface RealtimeUpstream {
  readonly url: string;
  readonly sessions: SeenSession[];
  close(): Promise<void>;
}

/** Starts one on a free port. `refuse` may answer a handshake by itself: true when it has. */
export async function startRealtimeUpstream(
  script: (
    session: SeenSession,
    message: { readonly data: Buffer; readonly binary: boolean } | undefined,
  ) => void,
  {
    refuse,
    ...options
  }: ServerOptions & {
    readonly refuse?: (request: IncomingMessage, response: ServerResponse) => boolean;
  } = {},
): Promise<RealtimeUpstream> {
  const sessions: SeenSession[] = [];
  const server = createServer(
    {
      shouldUpgradeCallback: (request) => request.headers.upgrade !== undefined && refuse === undefined,
    },
    (request, response) => {
      if (refuse?.(request, response) !== true) response.writeHead(426).end();
    },
  );
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, ...options });
  server.on('upgrade', (request, raw, head) => {
    sockets.handleUpgrade(request, raw, head, (socket) => {
      const session: SeenSession = {
        socket,
        url: request.url ?? '',
        headers: request.headers,
        messages: [],
        closed: new Promise((resolve) =>
          socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
        ),
        send: (event) => socket.send(JSON.stringify(event)),
      };
      sessions.push(session);
      socket.on('error', () => {});
      socket.on('message', (data: Buffer, binary) => {
        const message = { data, binary };
        session.messages.push(message);
        script(session, message);
      });
      script(session, undefined);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    sessions,
    close: () =>
      new Promise((resolve) => {
        for (const { socket } of sessions) socket.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A `response.done` with usage. */
export function responseDone(
  id: string,
  input: number,
  output: number,
  more: Record<string, unknown> = {},
): object {
  return {
    type: 'response.done',
    event_id: `event_${id}`,
    response: {
      object: 'realtime.response',
      id,
      status: 'completed',
      output: [],
      usage: {
        total_tokens: input + output,
        input_tokens: input,
        output_tokens: output,
        input_token_details: { text_tokens: input, audio_tokens: 0, cached_tokens: 0 },
        output_token_details: { text_tokens: output, audio_tokens: 0 },
      },
      ...more,
    },
  };
}
