/** Translates request bodies of Responses into those of Perplexity's Agent API. */
import { isObject, parseObject, type JsonObject, type JsonValue, type UpstreamRequest } from 'sluice';
import { objectsOf } from '../_kit/dialect/chat-dialect.ts';

/**
 * Presets that stand for the models of Sonar, which all run on `perplexity/sonar`: github:hex/llm-perplexity#27;
 * https://www.truefoundry.com/docs/change-announcements/perplexity-agent-api-migration
 */
const tiers: Readonly<Record<string, string>> = {
  sonar: 'fast',
  'sonar-pro': 'low',
  'sonar-reasoning': 'low',
  'sonar-reasoning-pro': 'medium',
  'sonar-deep-research': 'high',
};
const prefix = 'preset/';

/**
 * Returns a body of Responses in the words of the Agent API: a preset where the model names one, a schema in `response_format`, and messages that say
 * that they are messages. `@perplexity-ai/perplexity_ai` 0.38.5 and `perplexityai` 0.46.1, `ResponsesRequest`, `InputMessage`; LiteLLM 1.110.2,
 * llms/perplexity/responses/transformation.py.
 */
export function inAgentWords({ model, text, input, ...body }: JsonObject): JsonObject {
  return {
    ...chosenBy(model),
    ...body,
    ...(input === undefined ? {} : { input: itemsOf(input) }),
    ...formatOf(text),
  };
}

/** Translates the bytes of a request body. A body that is no JSON object stays as it is. */
export function bytesInAgentWords(body: UpstreamRequest['body']): UpstreamRequest['body'] {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return body;
  const parsed = parseObject(body.toString());
  return parsed === undefined ? body : JSON.stringify(inAgentWords(parsed));
}

function chosenBy(model: JsonValue | undefined): JsonObject {
  if (typeof model !== 'string') return model === undefined ? {} : { model };
  const tier = Object.hasOwn(tiers, model) ? tiers[model] : undefined;
  if (tier !== undefined) return { model: 'perplexity/sonar', preset: tier };
  return model.startsWith(prefix) ? { preset: model.slice(prefix.length) } : { model };
}

function formatOf(text: JsonValue | undefined): JsonObject {
  if (!isObject(text) || !isObject(text['format'])) return {};
  const { type, ...schema } = text['format'];
  return type === 'json_schema' ? { response_format: { type, json_schema: schema } } : {};
}

function itemsOf(input: JsonValue): JsonValue {
  if (!Array.isArray(input)) return input;
  return (input as readonly JsonValue[]).flatMap((item): readonly JsonValue[] => {
    if (!isObject(item)) return [item];
    const { type = 'message', content = '' } = item;
    if (type === 'message') return [{ ...item, type, content: contentOf(content) }];
    return typeof type === 'string' && traces.test(type) ? [] : [item];
  });
}

/** Items of the output that the provider does not take back: `OutputItem` and `InputItem`. */
const traces =
  /^(?:search_results|image_search_results|fetch_url_results|tool_search_output|skill_loaded|share_file|sandbox_\w+|(?:finance|people_search)_results)$/;

/** Encodes a turn. Only input parts have a type; earlier turns of the model are sent as text. */
function contentOf(content: JsonValue): JsonValue {
  if (!Array.isArray(content)) return content;
  const parts = objectsOf(content);
  const isOutput = parts.some(({ type }) => type === 'output_text' || type === 'refusal');
  if (!isOutput) return content;
  return parts.map((part) => String(part['text'] ?? part['refusal'] ?? '')).join('');
}
