/** Codec for Mistral's chat API, a variant of chat completions. */
import { createHash } from 'node:crypto';
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import type { EncodeTarget } from 'sluice/channel-kit';
import { chatDialect, objectsOf } from './chat-dialect.ts';
import { withOwnParts } from './mistral-parts.ts';
import { MistralReply } from './mistral-reply.ts';

/** Name of the format. */
export const chatFormat = 'mistral-chat';

/** Members of chat completions that Mistral answers with 422. Members that neither API knows are sent, so that Mistral decides. */
const unknown: ReadonlySet<string> = new Set([
  'audio',
  'logit_bias',
  'logprobs',
  'modalities',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'store',
  'thinking',
  'top_k',
  'top_logprobs',
  'user',
  'verbosity',
  'web_search_options',
]);

/** Members of a message in Mistral's API. */
const messageMembers: ReadonlySet<string> = new Set([
  'role',
  'content',
  'tool_calls',
  'tool_call_id',
  'name',
  'prefix',
]);

/**
 * Mistral's chat: documents and sounds as parts of their own, thinking among the content, references to sources, a begun answer marked as
 * such, `random_seed`. `safe_prompt`, `prompt_mode`, `guardrails` and the like go as a client of chat completions writes them.
 * https://docs.mistral.ai/api/#tag/chat https://docs.mistral.ai/capabilities/reasoning https://docs.mistral.ai/capabilities/citations
 * https://github.com/mistralai/client-ts (src/models/components/chatcompletionrequest.ts, contentchunk.ts, thinkchunk.ts)
 */
export const chat = chatDialect({
  format: chatFormat,
  path: () => '/chat/completions',
  prepare: withOwnParts,
  // Addresses of images, sounds and documents are fetched there.
  wantsBytes: ({ type }) => type === 'video',
  request({ stream_options: _options, seed, service_tier: tier, messages, ...body }, target) {
    const known = Object.fromEntries(
      Object.entries(body).filter(([name, value]) => {
        const lost = unknown.has(name);
        if (lost && value !== null) target.drop(name);
        return !lost;
      }),
    );
    const { tool_choice: choice, tools, ...rest } = known;
    const service = tierOf(tier, target);
    return {
      ...rest,
      messages: messagesOf(objectsOf(messages), target),
      ...(seed === undefined || rest['random_seed'] !== undefined ? {} : { random_seed: seed }),
      ...(service === undefined ? {} : { service_tier: service }),
      ...toolsOf(tools, choice),
    };
  },
  begun: ({ messages }) => begunIn(objectsOf(messages).at(-1)),
  reply: () => new MistralReply(),
});

/** Returns the members of a last turn that is a beginning. */
function begunIn(last: JsonObject | undefined): string | undefined {
  if (last?.['prefix'] !== true) return undefined;
  const { content } = last;
  const words =
    typeof content === 'string'
      ? content
      : objectsOf(content).map(({ type, text }) => (type === 'text' && typeof text === 'string' ? text : ''));
  const begun = typeof words === 'string' ? words : words.join('');
  return begun === '' ? undefined : begun;
}

/** Returns the service tier. Mistral has two; `default` is the name that others have for the lower one. */
function tierOf(tier: JsonValue | undefined, { drop }: EncodeTarget): JsonValue | undefined {
  if (tier === undefined || tier === null || tier === 'auto' || tier === 'standard_only')
    return tier ?? undefined;
  if (tier === 'default') return 'standard_only';
  drop('service_tier');
  return undefined;
}

/** Functions say what they take, were it nothing. A choice among some is made by leaving out the others. */
function toolsOf(tools: JsonValue | undefined, choice: JsonValue | undefined): JsonObject {
  const all = objectsOf(tools).map(described);
  if (all.length === 0) return {};
  const allowed = isObject(choice) && isObject(choice['allowed_tools']) ? choice['allowed_tools'] : undefined;
  if (allowed === undefined)
    return {
      tools: all,
      ...(choice === undefined ? {} : { tool_choice: choice === 'required' ? 'any' : choice }),
    };
  const names = new Set(objectsOf(allowed['tools']).map(nameOf));
  const kept = all.filter((tool) => names.has(nameOf(tool)));
  return kept.length === 0
    ? { tools: all, tool_choice: 'none' }
    : { tools: kept, tool_choice: allowed['mode'] === 'required' ? 'any' : 'auto' };
}

function described(tool: JsonObject): JsonObject {
  const { function: called } = tool;
  return isObject(called) && called['parameters'] === undefined
    ? { ...tool, function: { ...called, parameters: { type: 'object', properties: {} } } }
    : tool;
}

function nameOf(tool: JsonObject): JsonValue | undefined {
  return isObject(tool['function']) ? tool['function']['name'] : tool['name'];
}

/**
 * Returns the history as Mistral takes it. After results the assistant must speak before the user does (`invalid_request_message_order`), and a
 * last turn of the assistant must say that it is a beginning.
 */
function messagesOf(messages: readonly JsonObject[], { drop }: EncodeTarget): readonly JsonObject[] {
  const written: JsonObject[] = [];
  /** The tool of each call, by its id there. */
  const tools = new Map<string, JsonValue>();
  messages.forEach((message, index) => {
    const { role: givenRole, tool_calls: calls, tool_call_id: id, name, ...rest } = message;
    const role = givenRole === 'developer' ? 'system' : givenRole;
    const kept = Object.entries(rest).filter(([member, value]) => {
      const known = messageMembers.has(member);
      if (!known && value !== null && value !== undefined) drop(`messages[${index}].${member}`);
      return known && (member !== 'prefix' || role === 'assistant');
    });
    if (name !== undefined && role !== 'tool') drop(`messages[${index}].name`);
    const toolCalls = objectsOf(calls).map((call) => {
      const there = idOf(String(call['id']));
      tools.set(there, nameOf(call) ?? '');
      return { ...call, id: there };
    });
    const answered = idOf(String(id));
    const tool = name ?? tools.get(answered);
    if (role !== 'tool' && role !== 'assistant' && written.at(-1)?.['role'] === 'tool')
      written.push({ role: 'assistant', content: 'OK.' });
    written.push({
      role: role ?? 'user',
      ...Object.fromEntries(kept),
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
      ...(role === 'tool' ? { tool_call_id: answered, ...(tool === undefined ? {} : { name: tool }) } : {}),
    });
  });
  const last = written.at(-1);
  return last?.['role'] === 'assistant' && last['tool_calls'] === undefined
    ? [...written.slice(0, -1), { ...last, prefix: true }]
    : written;
}

/** Ids of calls are nine letters or digits there (`invalid_function_call`). The same id always gets the same spelling. */
function idOf(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id;
  const digest = createHash('sha256').update(id).digest();
  return BigInt(`0x${digest.toString('hex')}`)
    .toString(36)
    .padStart(9, '0')
    .slice(-9);
}
