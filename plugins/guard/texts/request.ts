/** Collects the texts of a request of any operation, and replaces them in its body or in its messages. */
import { isChat, type Call, type ChatRequest, type JsonObject, type JsonValue } from 'sluice';
import { mapChat, type RequestText } from './chat.ts';
import { visitDefinitions } from './definitions.ts';
import { mapStrings } from './json.ts';

/** The texts of a request, and how they are replaced. */
export interface RequestTexts {
  readonly texts: readonly RequestText[];
  /**
   * Number of texts, at the beginning of `texts`, that belong to definitions of tools and of the response format. Remote checks do not get them,
   * because they are many, small, and the same in each call of a conversation.
   */
  readonly definitions: number;
  /** Returns the call with its texts replaced; undefined where that is not possible. */
  replace(replaced: readonly string[]): Call | undefined;
}

/** Operations without content, or whose content came with another call. */
const empty: ReadonlySet<string> = new Set([
  'list-models',
  'state',
  'get-video',
  'delete-video',
  'ocr',
  'vary-image',
]);

/** Returns the texts of a call's request; undefined for an operation that is not supported. */
export function textsOfRequest(call: Call): RequestTexts | undefined {
  if (empty.has(call.operation)) return { texts: [], definitions: 0, replace: () => call };
  const { request } = call;
  if (isChat(request)) {
    const definitions = textsOfDefinitions(request);
    return {
      texts: [...definitions, ...textsOfTurns(request)],
      definitions: definitions.length,
      replace: (replaced) => withChatTexts(call, request, definitions, replaced),
    };
  }
  const found = textsOfOther(request);
  if (found === undefined) return undefined;
  const texts = found.map((text): RequestText => ({ text, at: 'input', role: 'user', isSigned: false }));
  return {
    texts,
    definitions: 0,
    replace: (replaced) =>
      withBody(call, new Map(found.map((text, index) => [text, replaced[index] ?? text])), replaced),
  };
}

function textsOfDefinitions(request: ChatRequest): readonly RequestText[] {
  const texts: RequestText[] = [];
  visitDefinitions(request, (text, at) => texts.push({ text, at, role: 'system', isSigned: false }));
  return texts;
}

function textsOfTurns(request: ChatRequest): readonly RequestText[] {
  const texts: RequestText[] = [];
  mapChat(request, (text) => {
    texts.push(text);
    return text.text;
  });
  return texts;
}

/**
 * Replaces the texts in the client's body, so that code which reads the body does not see them, and a call in the provider's own format still
 * passes through. Where the body has a text in another encoding, such as base64, the messages are replaced.
 */
function withChatTexts(
  call: Call,
  request: ChatRequest,
  definitions: readonly RequestText[],
  replaced: readonly string[],
): Call | undefined {
  const changed = new Map(definitions.map(({ text }, index) => [text, replaced[index] ?? text]));
  const areDefinitionsChanged = definitions.some(({ text }) => changed.get(text) !== text);
  let at = definitions.length;
  const next = ({ text }: RequestText): string => {
    const now = replaced[at++] ?? text;
    changed.set(text, now);
    return now;
  };
  const turns = mapChat(request, next, (before, after) => changed.set(before, after));
  const edited = withBody(call, changed, replaced);
  if (edited !== undefined) return edited;
  if (areDefinitionsChanged) return undefined;
  // Later plugins write bodies of their own for these formats, which replaced messages would override.
  if (call.format.name === 'responses' || call.format.name === 'text-completions') return undefined;
  return call.operation === 'compact' ? undefined : call.with(turns);
}

function hasTexts(call: Call, expected: readonly string[]): boolean {
  try {
    const { request } = call;
    const texts = isChat(request)
      ? [...textsOfDefinitions(request), ...textsOfTurns(request)].map(({ text }) => text)
      : textsOfOther(request);
    return texts?.length === expected.length && texts.every((text, index) => text === expected[index]);
  } catch {
    // A keyword of the format was replaced, so that the body cannot be decoded.
    return false;
  }
}

/** Members whose values are keywords of the format, or ids. */
const formatWords = /^(?:type|role|model|object|status|mime_?type|media_?type|format|.*_?id)$/i;

/**
 * Returns the call with texts replaced throughout its body; undefined where the request does not have the expected texts afterwards. Keywords of
 * the format are replaced only in a second try, which is needed for documents whose members the client names.
 */
function withBody(
  call: Call,
  changed: ReadonlyMap<string, string>,
  expected: readonly string[],
): Call | undefined {
  if (call.wire.headers['content-type']?.startsWith('multipart/') === true) return undefined;
  const change =
    (isWord: (path: string) => boolean) =>
    (text: string, path: string): string =>
      isWord(path) && formatWords.test(path.slice(path.lastIndexOf('.') + 1))
        ? text
        : (changed.get(text) ?? text);
  const isAtTop = (path: string): boolean => path.lastIndexOf('.') === 'body'.length;
  for (const map of [change(() => true), change(isAtTop)]) {
    const edited = call.with({ body: mapStrings(call.body, 'body', map) as JsonObject });
    if (hasTexts(edited, expected)) return edited;
  }
  return undefined;
}

type Other = Exclude<Call['request'], { readonly operation: 'chat' | 'count-tokens' }>;

function textsOfOther(request: Other): readonly string[] | undefined {
  switch (request.operation) {
    case 'embed': {
      const texts = request.inputs.map((input) => {
        if (input.type === 'text') return [input.text];
        return input.type === 'opaque' ? partsOf(input.value) : undefined;
      });
      return texts.every((text) => text !== undefined) ? texts.flat() : undefined;
    }
    case 'moderate':
      return request.inputs.flatMap(partsOf);
    case 'rerank':
      return [request.query, ...request.documents.flatMap(stringsOf)];
    case 'generate-image':
    case 'edit-image':
    case 'vary-image':
      return [request.prompt];
    case 'speak':
      return [request.text, ...given(request.instructions)];
    case 'create-video':
      return [request.prompt, ...given(request.negativePrompt)];
    case 'transcribe':
    case 'translate-audio':
      return given(request.prompt);
    default:
      return undefined;
  }
}

function given(text: string | undefined): readonly string[] {
  return text === undefined ? [] : [text];
}

/** Data URLs of media in base64, which contain no readable text. */
const mediaData = /^data:[^,]{0,200};base64,[\w+/=-]*$/;

/** Returns the strings of a value, without data URLs of media. */
function stringsOf(value: JsonValue): string[] {
  return stringsAt(value, () => true);
}

/** Returns the strings of parts of a prompt, without their `type`. */
function partsOf(value: JsonValue): string[] {
  return stringsAt(value, (path) => !path.endsWith('.type'));
}

function stringsAt(value: JsonValue, isText: (path: string) => boolean): string[] {
  const texts: string[] = [];
  mapStrings(value, '', (text, path) => {
    if (isText(path) && !mediaData.test(text)) texts.push(text);
    return text;
  });
  return texts;
}
