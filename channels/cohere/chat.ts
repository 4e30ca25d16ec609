/** Requests to version 2 of Cohere's chat: documents, schemas, tools and thinking in Cohere's own members. */
import { isObject, type ChatRequest, type JsonObject, type JsonValue } from 'sluice';
import { unsupportedContent, type EncodeTarget } from 'sluice/channel-kit';
import { chatDialect, knownMembers, objectsOf } from '../_kit/dialect/chat-dialect.ts';
import { CohereReply, readWhole } from './reply.ts';

/** The name under which the channel speaks Cohere's own words. */
export const chatFormat = 'cohere-chat';

/** Members of chat completions by their names here; those of the second half are Cohere's own, of which clients of chat completions may know. */
const names: Readonly<Record<string, string>> = {
  max_tokens: 'max_tokens',
  temperature: 'temperature',
  top_p: 'p',
  top_k: 'k',
  seed: 'seed',
  stop: 'stop_sequences',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  tools: 'tools',
  documents: 'documents',
  citation_options: 'citation_options',
  safety_mode: 'safety_mode',
  strict_tools: 'strict_tools',
  thinking: 'thinking',
  priority: 'priority',
};
const read: ReadonlySet<string> = new Set([
  ...Object.keys(names),
  'model',
  'messages',
  'stream',
  'tool_choice',
  'response_format',
]);

/**
 * Cohere's chat, version 2: documents and citations, the plan before calls, thinking, safety modes.
 * https://docs.cohere.com/reference/chat https://docs.cohere.com/reference/chat-stream https://docs.cohere.com/v2/docs/streaming
 */
export const chat = chatDialect({
  format: chatFormat,
  path: () => '/v2/chat',
  prepare: (request, target) => withStrictAnswer(withStrictTools(request, target)),
  request({ stream_options: _options, ...body }, target) {
    const known = knownMembers(body, read, target.drop);
    const texts: JsonObject[] = [];
    const messages = objectsOf(known['messages']).map((message) => messageOf(message, texts, target));
    const settings = Object.fromEntries(
      Object.entries(names).flatMap(([name, there]) =>
        known[name] === undefined || known[name] === null ? [] : [[there, known[name]]],
      ),
    );
    const { stop_sequences: stop, documents } = settings;
    const choice = choiceOf(known['tool_choice']);
    const format = formatOf(known['response_format']);
    const strict = objectsOf(settings['tools']).some(isStrict);
    const given = [...(Array.isArray(documents) ? (documents as readonly JsonValue[]) : []), ...texts];
    return {
      model: target.model,
      messages,
      stream: known['stream'] === true,
      ...settings,
      ...(strict ? { tools: objectsOf(settings['tools']).map(withoutStrict), strict_tools: true } : {}),
      ...(typeof stop === 'string' ? { stop_sequences: [stop] } : {}),
      ...(given.length === 0 ? {} : { documents: given }),
      ...(choice === undefined ? {} : { tool_choice: choice }),
      ...(format === undefined ? {} : { response_format: format }),
      ...(isObject(settings['thinking'])
        ? { thinking: thinkingOf(settings['thinking'], settings['max_tokens']) }
        : {}),
    };
  },
  reply: () => new CohereReply(),
  whole: readWhole,
});

/** Maximum number of fields of all strict tools: https://docs.cohere.com/v2/docs/structured-outputs#important-notes-on-using-strict_tools */
const mostStrictFields = 200;

/**
 * Removes `strict` from all tools unless Cohere can enforce all their schemas. Its setting `strict_tools` is for all tools, and it refuses a member of
 * one tool.
 */
function withStrictTools(request: ChatRequest, { drop }: EncodeTarget): ChatRequest {
  const { tools } = request;
  if (!tools.some((tool) => tool.type === 'function' && tool.strict !== undefined)) return request;
  const fields = tools.map((tool) => (tool.type === 'function' ? fieldsIn(tool.schema) : 0));
  const areKept =
    tools.every((tool) => tool.type === 'function' && tool.strict === true) &&
    fields.every((count) => count > 0) &&
    fields.reduce((sum, count) => sum + count, 0) <= mostStrictFields;
  if (areKept) return request;
  const loose = tools.map((tool) => {
    if (tool.type !== 'function' || tool.strict === undefined) return tool;
    const { strict, ...rest } = tool;
    if (strict) drop(`${tool.at ?? 'tools'}.strict`);
    return rest;
  });
  return { ...request, tools: loose };
}

/** Returns the number of fields of a schema, at all depths. */
function fieldsIn(schema: JsonValue | undefined, depth = 0): number {
  if (depth > 64 || typeof schema !== 'object' || schema === null) return 0;
  if (Array.isArray(schema))
    return (schema as readonly JsonValue[]).reduce<number>((sum, one) => sum + fieldsIn(one, depth + 1), 0);
  const { properties } = schema as JsonObject;
  const named = isObject(properties) ? Object.keys(properties).length : 0;
  return Object.values(schema).reduce<number>((sum, one) => sum + fieldsIn(one, depth + 1), named);
}

/** Marks the schema of the answer as strict, because Cohere always enforces it, and so supports only a part of JSON Schema. */
function withStrictAnswer(request: ChatRequest): ChatRequest {
  const { responseFormat } = request.settings;
  if (responseFormat?.type !== 'json-schema' || responseFormat.schema === undefined) return request;
  const strict = { ...responseFormat, strict: true };
  return { ...request, settings: { ...request.settings, responseFormat: strict } };
}

function isStrict({ function: named }: JsonObject): boolean {
  return isObject(named) && named['strict'] === true;
}

function withoutStrict(tool: JsonObject): JsonObject {
  if (!isObject(tool['function'])) return tool;
  const { strict: _, ...named } = tool['function'];
  return { ...tool, function: named };
}

/** Tokens that are left for the answer: https://docs.cohere.com/docs/reasoning */
const leastAnswer = 1000;

/** Returns the thinking settings of Cohere. A budget leaves room for the answer below the output limit. */
function thinkingOf(
  { budget_tokens: budget, ...rest }: JsonObject,
  limit: JsonValue | undefined,
): JsonObject {
  if (typeof budget !== 'number') return rest;
  const most = typeof limit === 'number' ? Math.max(1, limit - leastAnswer) : Infinity;
  return { ...rest, token_budget: Math.min(budget, most) };
}

/** Returns Cohere's tool choice, which has two values. A tool that is forced by name is sent alone ({@link ModelTraits.namedTools}). */
function choiceOf(choice: JsonValue | undefined): string | undefined {
  if (choice === undefined || choice === null || choice === 'auto') return undefined;
  return choice === 'none' ? 'NONE' : 'REQUIRED';
}

function formatOf(format: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(format) || format['type'] === 'text') return undefined;
  const { json_schema: holder } = format;
  const schema = isObject(holder) ? holder['schema'] : undefined;
  return { type: 'json_object', ...(schema === undefined ? {} : { json_schema: schema }) };
}

/** Converts one message. A text that came as a file becomes a document. */
function messageOf(message: JsonObject, texts: JsonObject[], target: EncodeTarget): JsonObject {
  const { role, content, tool_calls: calls, tool_call_id: id, reasoning_content: plan } = message;
  const own = {
    role: role === 'developer' ? 'system' : (role ?? 'user'),
    ...(content === null || content === undefined ? {} : { content: contentOf(content, texts, target) }),
  };
  if (role === 'tool') return { ...own, tool_call_id: id ?? '' };
  if (objectsOf(calls).length === 0) return own;
  const { content: ownContent, ...rest } = own;
  return {
    ...rest,
    ...(ownContent === undefined || ownContent === '' ? {} : { content: ownContent }),
    tool_calls: calls,
    ...(typeof plan === 'string' && plan !== '' ? { tool_plan: plan } : {}),
  };
}

function contentOf(content: JsonValue, texts: JsonObject[], { unsupported, drop }: EncodeTarget): JsonValue {
  if (!Array.isArray(content)) return content;
  return objectsOf(content).flatMap((part) => {
    if (part['type'] === 'text' || part['type'] === 'image_url') return [part];
    const file = isObject(part['file']) ? part['file'] : {};
    const [, bytes] = /^data:text\/[^,]*;base64,(.*)$/s.exec(String(file['file_data'])) ?? [];
    if (bytes !== undefined) {
      const { filename } = file;
      texts.push({
        data: {
          ...(typeof filename === 'string' ? { title: filename } : {}),
          text: Buffer.from(bytes, 'base64').toString('utf8'),
        },
      });
      return [];
    }
    if (unsupported === 'refuse')
      throw unsupportedContent('messages', `content of type ${String(part['type'])}`, 'cohere');
    drop('messages', 'content');
    return [];
  });
}
