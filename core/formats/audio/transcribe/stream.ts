/** Streams of a transcript, in both directions. */
import type { GatewayError } from '../../../sdk/errors.ts';
import type { Transcript } from '../../../model/audio.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { Usage } from '../../../model/usage.ts';
import { chatErrorBody } from '../../_openai/errors.ts';
import { extraOf } from '../../_shared/spelling.ts';
import { readFrame } from '../../_shared/stream-frames.ts';
import type { Frame, StreamDecoder, StreamEncoder, WireFrame } from '../../../sdk/format.ts';
import { readUsage, writeUsage } from './reply.ts';
import { formatName } from '../wire.ts';
import { truncatedResponse } from '../../_shared/upstream-error/index.ts';

const none: readonly WireFrame[] = [];

/** Reads a stream of a transcript. */
export class TranscriptStreamDecoder implements StreamDecoder {
  #begun = false;
  #done = false;

  frame(frame: Frame): readonly GatewayEvent[] {
    if (frame.data === '[DONE]') return [];
    const body = readFrame(frame);
    const { type, ...rest } = body;
    switch (type) {
      case 'transcript.text.delta':
        return this.#delta(rest);
      case 'transcript.text.done':
        return this.#end(rest);
      default:
        return [{ type: 'opaque', format: formatName, value: body }];
    }
  }

  end(): readonly GatewayEvent[] {
    if (!this.#done) {
      throw truncatedResponse();
    }
    return [];
  }

  #delta({ delta, ...rest }: JsonObject): readonly GatewayEvent[] {
    const extra = extraOf(formatName, rest);
    const text = typeof delta === 'string' ? delta : '';
    const event: GatewayEvent = { type: 'text-delta', block: 0, choice: 0, text, ...extra };
    if (this.#begun) return [event];
    this.#begun = true;
    return [{ type: 'text-start', block: 0, choice: 0 }, event];
  }

  #end({ text, usage, ...rest }: JsonObject): readonly GatewayEvent[] {
    this.#done = true;
    const extra = extraOf(formatName, rest);
    const value: Transcript = { text: typeof text === 'string' ? text : '', ...extra };
    return [
      ...(this.#begun ? [{ type: 'text-end', block: 0, choice: 0 } as const] : []),
      { type: 'result', value },
      ...(isObject(usage) ? [{ type: 'usage', usage: readUsage(usage) } as const] : []),
    ];
  }
}

/** Writes a stream of a transcript: pieces, then the whole, which comes last and once. */
export class TranscriptStreamEncoder implements StreamEncoder {
  #sentText = '';
  #result: Transcript | undefined;
  #usage: Usage | undefined;
  #over = false;

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over) return none;
    switch (event.type) {
      case 'text-delta':
        this.#sentText += event.text;
        return [deltaFrame(event.text, event.extra?.[formatName])];
      case 'opaque':
        return event.format === formatName ? [{ json: event.value }] : none;
      case 'result':
        this.#result = event.value as Transcript;
        return none;
      case 'usage':
        this.#usage = event.usage;
        return none;
      default:
        return none;
    }
  }

  end(): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    const text = this.#result?.text ?? this.#sentText;
    const { logprobs, extra } = this.#result ?? {};
    return [
      // A provider that does not stream gives all at once.
      ...(this.#sentText === '' && text !== '' ? [deltaFrame(text)] : none),
      {
        json: {
          type: 'transcript.text.done',
          text,
          ...(logprobs === undefined ? {} : { logprobs }),
          ...extra?.[formatName],
          ...(this.#usage === undefined ? {} : { usage: writeUsage(this.#usage) }),
        },
      },
    ];
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    return [{ json: chatErrorBody(error) }];
  }

  keepAlive(): readonly WireFrame[] {
    return none;
  }
}

function deltaFrame(text: string, extra: JsonObject = {}): WireFrame {
  return { json: { type: 'transcript.text.delta', delta: text, ...extra } };
}
