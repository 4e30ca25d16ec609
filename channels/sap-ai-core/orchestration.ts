/** Codec for chat by the orchestration service of SAP AI Core. */
import { isObject, type ChatRequest, type JsonObject, type JsonValue } from 'sluice';
import { upstreamError, type Codec } from 'sluice/channel-kit';
import { chatDialect, objectsOf } from '../_kit/dialect/chat-dialect.ts';

/** Name of the format. */
export const orchestrationFormat = 'sap-orchestration';

/** Members that belong to the prompt; all others are parameters of the model. */
const ofPrompt = ['tools', 'response_format'];
/** Members of a message; others are refused. */
const ofMessage = ['role', 'content', 'refusal', 'tool_calls', 'tool_call_id'];

/**
 * Returns the chat through the orchestration service, version 2: chat completions inside an envelope. `modules` are the operator's own beside the
 * prompt's (`filtering`, `masking` …).
 * https://github.com/SAP/ai-sdk-js/blob/main/packages/orchestration/src/spec/api.yaml
 */
export function orchestrationChat(modules: JsonObject): Codec<ChatRequest> {
  return chatDialect({
    format: orchestrationFormat,
    path: () => '/v2/completion',
    request({ model = '', messages, stream, ...body }) {
      const template = objectsOf(messages).map(
        (message) =>
          Object.fromEntries(ofMessage.flatMap((name) => entry(name, message[name]))) as JsonObject,
      );
      const prompt = Object.fromEntries(ofPrompt.flatMap((name) => entry(name, body[name])));
      const params = Object.fromEntries(
        Object.entries(body).flatMap(([name, value]) => (ofPrompt.includes(name) ? [] : entry(name, value))),
      );
      const values = placeholdersIn(JSON.stringify(template));
      return {
        config: {
          modules: {
            ...modules,
            prompt_templating: { prompt: { template, ...prompt }, model: { name: model, params } },
          },
          ...(stream === true ? { stream: { enabled: true } } : {}),
        },
        ...(values === undefined ? {} : { placeholder_values: values }),
      } as JsonObject;
    },
    // The service sends its results of preparing the prompt before the output of the model.
    reply: () => ({ chunks: (piece) => (hasBegun(piece['final_result']) ? [resultIn(piece)] : []) }),
    whole: (body) => resultIn(body),
  });
}

function entry(name: string, value: JsonValue | undefined): readonly (readonly [string, JsonValue])[] {
  return value === undefined || value === null ? [] : [[name, value]];
}

function hasBegun(result: JsonValue | undefined): boolean {
  return isObject(result) && result['id'] !== '';
}

function resultIn(body: JsonObject): JsonObject {
  const { final_result: result } = body;
  if (!isObject(result)) throw upstreamError(200, JSON.stringify(body));
  const { choices } = result;
  if (!Array.isArray(choices)) return result;
  return { ...result, choices: objectsOf(choices).map((choice) => withThoughts(choice)) };
}

/** Thoughts come as blocks: @sap-ai-sdk/orchestration 2.16.0, client/api/schema/reasoning-block.d.ts. */
function withThoughts(choice: JsonObject): JsonObject {
  for (const name of ['message', 'delta']) {
    const message = choice[name];
    if (!isObject(message) || !Array.isArray(message['reasoning_content'])) continue;
    const { reasoning_content: blocks, ...rest } = message;
    const text = objectsOf(blocks)
      .map(({ content }) => (typeof content === 'string' ? content : ''))
      .join('');
    return { ...choice, [name]: text === '' ? rest : { ...rest, reasoning_content: text } };
  }
  return choice;
}

/**
 * Returns placeholders for texts that look like placeholders, because messages are templates. Each one stands for itself, so that a client's `{{?name}}` reaches the model as
 * it was written.
 */
function placeholdersIn(json: string): JsonObject | undefined {
  const found = [...json.matchAll(/\{\{\s*\?\s*([\w-]+)\s*\}\}/g)];
  if (found.length === 0) return undefined;
  return Object.fromEntries(found.map(([whole, name = '']) => [name, whole]));
}
