import { formatVoice, type SeenRequest, type Voice } from 'sluice/testing';

type Json = Record<string, unknown>;

/** How a provider says what chat completions say, as its documentation shows it. */
export interface Manner {
  /** A request as the body of chat completions that asks for the same. */
  asked(body: Json, request: SeenRequest): Json;
  /** A body of chat completions as the provider's own. */
  whole(body: Json): Json;
  /** What a stream says for one chunk of chat completions; `end` with what is left when all have been. */
  stream(): { readonly chunk: (chunk: Json) => string; readonly end: () => string };
  readonly error?: (status: number, message: string) => string;
}

const plain = await formatVoice('chat-completions');

/** The voice of a provider with words of its own, over that of chat completions. */
export function mannered({ asked, whole, stream, error }: Manner): Voice {
  const heard = (request: SeenRequest): SeenRequest => {
    const body = asked(JSON.parse(request.body.toString()) as Json, request);
    return {
      ...request,
      body: Buffer.from(JSON.stringify({ stream_options: { include_usage: true }, ...body })),
    };
  };
  return {
    ...plain,
    hear: (request) => plain.hear(heard(request)),
    whole: (events, request) =>
      JSON.stringify(whole(JSON.parse(plain.whole(events, heard(request))) as Json)),
    stream(events, request) {
      const { pieces, end } = plain.stream(events, heard(request));
      const own = stream();
      const said = (piece: string): string => framesOf(piece).map(own.chunk).join('');
      return {
        pieces: pieces.map(said).filter((piece) => piece !== ''),
        end: said(end) + own.end(),
      };
    },
    ...(error === undefined ? {} : { error }),
  };
}

function framesOf(stream: string): readonly Json[] {
  return [...stream.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data) as Json);
}

/** watsonx.ai: no last word, an event's name and number on each piece, and its own names of the model and the choice. */
export const watsonxVoice = mannered({
  asked: ({ model_id, tool_choice_option, ...body }, { url }) => ({
    ...body,
    model: model_id,
    stream: url.includes('/text/chat_stream?'),
    ...(tool_choice_option === undefined ? {} : { tool_choice: tool_choice_option }),
  }),
  whole: ({ object: _object, model, ...body }) => ({
    ...body,
    model_id: model,
    model_version: '1.0.0',
    system: { warnings: [] },
  }),
  stream() {
    let id = 0;
    return {
      chunk: ({ object: _object, model, ...chunk }) =>
        `id: ${++id}\nevent: message\ndata: ${JSON.stringify({ ...chunk, model_id: model, created_at: '2025-02-11T22:12:07Z' })}\n\n`,
      end: () => '',
    };
  },
  error: (status, message) =>
    JSON.stringify({ errors: [{ code: 'some_code', message }], trace: 't', status_code: status }),
});
