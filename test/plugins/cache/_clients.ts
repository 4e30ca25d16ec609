import { genai, olderAnthropic, openai, Recorder, type Access } from '../../clients/sdks.ts';
import type { FormatName } from './_provider.ts';

/** Reply that an official client has read. */
export interface Read {
  readonly text: string;
  readonly id: string | undefined;
  /** Input and output tokens, as the format reports them. */
  readonly tokens: readonly [number | undefined, number | undefined];
  /** `x-sluice-cache` of the response. */
  readonly cache: string | null;
  readonly headers: Headers;
}

/** Input that is the same in all formats. */
export interface ClientInput {
  readonly text?: string;
  readonly stream?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls the gateway with the official client of a format. */
export async function sendAndRead(
  format: FormatName,
  access: Access,
  input: ClientInput = {},
): Promise<Read> {
  const { text = 'What is new?', stream = false, headers = {} } = input;
  const recorder = new Recorder();
  const reply = await clients[format](access, { text, stream, headers }, recorder);
  const { headers: responseHeaders } = recorder.last;
  return { ...reply, cache: responseHeaders.get('x-sluice-cache'), headers: responseHeaders };
}

type Client = (
  access: Access,
  input: Required<ClientInput>,
  recorder: Recorder,
) => Promise<Pick<Read, 'text' | 'id' | 'tokens'>>;

const system = 'Be brief.';
const temperature = 0.5;
const limit = 100;

const clients: Readonly<Record<FormatName, Client>> = {
  async 'chat-completions'(access, { text, stream, headers }, recorder) {
    const client = openai(access, { recorder, headers });
    const body = {
      model: 'm',
      max_tokens: limit,
      temperature,
      messages: [
        { role: 'system' as const, content: system },
        { role: 'user' as const, content: text },
      ],
    };
    if (!stream) {
      const { id, choices, usage } = await client.chat.completions.create(body);
      return {
        id,
        text: choices[0]?.message.content ?? '',
        tokens: [usage?.prompt_tokens, usage?.completion_tokens],
      };
    }
    const chunks = await client.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    let words = '';
    let last;
    for await (const chunk of chunks) {
      words += chunk.choices[0]?.delta.content ?? '';
      last = chunk;
    }
    return {
      id: last?.id,
      text: words,
      tokens: [last?.usage?.prompt_tokens, last?.usage?.completion_tokens],
    };
  },
  async responses(access, { text, stream, headers }, recorder) {
    const client = openai(access, { recorder, headers });
    const body = { model: 'm', max_output_tokens: limit, temperature, instructions: system, input: text };
    if (!stream) {
      const { id, output_text, usage } = await client.responses.create(body);
      return { id, text: output_text, tokens: [usage?.input_tokens, usage?.output_tokens] };
    }
    let words = '';
    for await (const event of await client.responses.create({ ...body, stream: true })) {
      if (event.type === 'response.output_text.delta') words += event.delta;
      if (event.type === 'response.completed') {
        const { id, usage } = event.response;
        return { id, text: words, tokens: [usage?.input_tokens, usage?.output_tokens] };
      }
    }
    throw new Error('The stream has no end.');
  },
  async messages(access, { text, stream, headers }, recorder) {
    const client = olderAnthropic(access, { recorder, headers });
    const body = {
      model: 'm',
      max_tokens: limit,
      temperature,
      system,
      messages: [{ role: 'user' as const, content: text }],
    };
    const { id, content, usage } = stream
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    const words = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    return { id, text: words, tokens: [usage.input_tokens, usage.output_tokens] };
  },
  async 'generate-content'(access, { text, stream, headers }, recorder) {
    const client = genai(access, { recorder, headers });
    const body = {
      model: 'm',
      contents: text,
      config: { systemInstruction: system, maxOutputTokens: limit, temperature },
    };
    if (!stream) {
      const { responseId, text: words, usageMetadata } = await client.models.generateContent(body);
      return {
        id: responseId,
        text: words ?? '',
        tokens: [usageMetadata?.promptTokenCount, usageMetadata?.candidatesTokenCount],
      };
    }
    let words = '';
    let last;
    for await (const chunk of await client.models.generateContentStream(body)) {
      words += chunk.text ?? '';
      last = chunk;
    }
    const counts = last?.usageMetadata;
    return {
      id: last?.responseId,
      text: words,
      tokens: [counts?.promptTokenCount, counts?.candidatesTokenCount],
    };
  },
};
