/** Reads replies of Cohere's chat, whole and streamed, into those of chat completions. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { upstreamError, lookupTable } from 'sluice/channel-kit';
import { objectsOf, type DialectReply } from '../_kit/dialect/chat-dialect.ts';

/** Converts a whole response into one of chat completions. */
export function readWhole(body: JsonObject): JsonObject {
  const { message, finish_reason: finish, id, usage } = body;
  const fields = isObject(message) ? message : {};
  const { text, thinking } = wordsOf(fields['content']);
  const reasoning = [thinking, fields['tool_plan']].filter((one) => typeof one === 'string').join('');
  const calls = objectsOf(fields['tool_calls']).map(withArguments);
  return {
    id: id ?? '',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && calls.length > 0 ? null : text,
          ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
          ...(calls.length > 0 ? { tool_calls: calls } : {}),
          ...citedIn(fields['citations']),
        },
        finish_reason: finishOf(finish, body),
      },
    ],
    ...usageOf(usage),
  };
}

/** Decodes one stream. Events that begin and end a block carry nothing that its deltas do not. */
export class CohereReply implements DialectReply {
  #id = '';
  #calls = -1;
  /** Arguments of the open call that may be `null`: what else they are is known with the next piece. */
  #held = '';

  chunks(piece: JsonObject, event: string | undefined): readonly JsonObject[] {
    const { type = event, id } = piece;
    if (typeof id === 'string' && id !== '') this.#id = id;
    const delta = isObject(piece['delta']) ? piece['delta'] : {};
    const message = isObject(delta['message']) ? delta['message'] : {};
    switch (type) {
      case 'message-start':
        return [this.#chunk({ role: 'assistant' })];
      case 'content-start':
      case 'content-delta': {
        const { text, thinking } = wordsOf(message['content']);
        return [
          this.#chunk({
            ...(text === '' ? {} : { content: text }),
            ...(thinking === '' ? {} : { reasoning_content: thinking }),
          }),
        ];
      }
      case 'tool-plan-delta':
        return [this.#chunk({ reasoning_content: message['tool_plan'] ?? '' })];
      case 'tool-call-start':
        this.#calls += 1;
        return this.#call(message['tool_calls']);
      case 'tool-call-delta':
        return this.#call(message['tool_calls']);
      case 'tool-call-end':
        return this.#endCall();
      case 'citation-start':
        return [this.#chunk(citedIn(message['citations']))];
      case 'message-end':
        return [{ ...this.#chunk({}, finishOf(delta['finish_reason'], delta)), ...usageOf(delta['usage']) }];
      default:
        return [];
    }
  }

  #call(call: JsonValue | undefined): readonly JsonObject[] {
    if (!isObject(call)) return [];
    const { function: called, ...rest } = call;
    const { arguments: piece, ...named } = isObject(called) ? called : {};
    this.#held += typeof piece === 'string' ? piece : '';
    const isOpen = 'null'.startsWith(this.#held);
    const args = isOpen ? '' : this.#held;
    if (!isOpen) this.#held = '';
    return [this.#callChunk({ ...rest, function: { ...named, arguments: args } })];
  }

  #endCall(): readonly JsonObject[] {
    const args = this.#held === 'null' ? '{}' : this.#held;
    this.#held = '';
    return args === '' ? [] : [this.#callChunk({ function: { arguments: args } })];
  }

  #callChunk(call: JsonObject): JsonObject {
    return this.#chunk({ tool_calls: [{ ...call, index: Math.max(0, this.#calls) }] });
  }

  #chunk(delta: JsonObject, finish: string | null = null): JsonObject {
    return { id: this.#id, choices: [{ index: 0, delta, finish_reason: finish }] };
  }
}

const reasons = lookupTable<string>({
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop_sequence',
  MAX_TOKENS: 'length',
  TOOL_CALL: 'tool_calls',
});

/** Returns the finish reason of chat completions. Throws when the answer failed. */
function finishOf(word: JsonValue | undefined, beside: JsonObject): string {
  if (word === 'ERROR' || word === 'TIMEOUT')
    throw upstreamError(
      200,
      JSON.stringify({ message: beside['error'] ?? 'The upstream broke off the response.' }),
    );
  return reasons[String(word)] ?? 'stop';
}

/** Returns the text and thinking of content: a string, one part, or a list of them. */
function wordsOf(content: JsonValue | undefined): { readonly text: string; readonly thinking: string } {
  if (typeof content === 'string') return { text: content, thinking: '' };
  let text = '';
  let thinking = '';
  for (const part of Array.isArray(content) ? objectsOf(content) : objectsOf([content])) {
    if (typeof part['text'] === 'string') text += part['text'];
    if (typeof part['thinking'] === 'string') thinking += part['thinking'];
  }
  return { text, thinking };
}

/**
 * Returns the billed usage. Tokens that came from a cache are among those that the model read (`tokens`), and no part of those that are billed, for which
 * Cohere has one price. https://github.com/cohere-ai/cohere-typescript (src/api/types/Usage.ts), https://docs.cohere.com/docs/how-does-cohere-pricing-work
 */
function usageOf(usage: JsonValue | undefined): JsonObject {
  if (!isObject(usage)) return {};
  const { billed_units: billed, tokens } = usage;
  const counts = isObject(billed) ? billed : isObject(tokens) ? tokens : undefined;
  if (counts === undefined) return {};
  const { input_tokens: input, output_tokens: output } = counts;
  return { usage: { prompt_tokens: input ?? 0, completion_tokens: output ?? 0 } };
}

/**
 * Citations: with an address as chat completions have them, and what Cohere says of all sources beside it; others, which chat completions have no
 * place for, as they are in a member of their own.
 */
function citedIn(given: JsonValue | undefined): JsonObject {
  const list = Array.isArray(given) ? objectsOf(given) : objectsOf([given]);
  const annotations = list.flatMap(annotationOf);
  const others = list.filter((citation) => addressOf(citation) === undefined);
  return {
    ...(annotations.length === 0 ? {} : { annotations }),
    ...(others.length === 0 ? {} : { citations: others }),
  };
}

function addressOf({ sources }: JsonObject): { readonly url: string; readonly title: string } | undefined {
  for (const { document } of objectsOf(sources)) {
    const { url, title } = isObject(document) ? document : {};
    if (typeof url === 'string') return { url, title: typeof title === 'string' ? title : '' };
  }
  return undefined;
}

function annotationOf(citation: JsonObject): readonly JsonObject[] {
  const address = addressOf(citation);
  if (address === undefined) return [];
  const { start, end, text, sources, type: _type, ...rest } = citation;
  return [
    {
      type: 'url_citation',
      url_citation: { start_index: start ?? 0, end_index: end ?? 0, ...address },
      text: text ?? '',
      sources: sources ?? [],
      ...rest,
    },
  ];
}

/** Calls of tools without parameters may have the arguments `null`. */
function withArguments(call: JsonObject): JsonObject {
  const { function: called } = call;
  return isObject(called) && called['arguments'] === 'null'
    ? { ...call, function: { ...called, arguments: '{}' } }
    : call;
}
