/** Finds what a chat request asks of the demo channel in plain language: JSON output, and the user's name. */
import { parseObject, type ChatRequest, type ChatSettings, type JsonObject } from 'sluice';

/**
 * Returns the form of the answer: what the request prescribes, or what its instructions ask for in words, as gateways write them for providers
 * that have no such setting.
 */
export function formOf({ settings, system }: ChatRequest): ChatSettings['responseFormat'] {
  if (settings.responseFormat !== undefined) return settings.responseFormat;
  for (const { content } of system) {
    for (const block of content) {
      if (block.type !== 'text') continue;
      const schema = schemaIn(block.text);
      if (schema !== undefined) return { type: 'json-schema', name: 'answer', schema };
      if (
        /\b(?:answer|respond|reply) with (?:one |a )?(?:single )?(?:valid )?JSON object\b/i.test(block.text)
      )
        return { type: 'json' };
    }
  }
  return undefined;
}

/** Returns the schema behind "JSON of this schema:", which is the last of an instruction. */
function schemaIn(text: string): JsonObject | undefined {
  const mark = 'JSON of this schema: ';
  const at = text.indexOf(mark);
  return at < 0 ? undefined : parseObject(text.slice(at + mark.length));
}

/** Returns what the user has said about themselves, if the last text asks for it. Shows that the whole conversation has arrived. */
export function recalled(request: ChatRequest, text: string): string | undefined {
  if (!/\bwhat(?:'s| is) my name\b/i.test(text)) return undefined;
  for (const { role, content } of request.messages.toReversed()) {
    if (role !== 'user') continue;
    for (const block of content) {
      const name =
        block.type === 'text'
          ? /\bmy name is (\p{L}[\p{L}\p{N}_-]{0,39})/iu.exec(block.text)?.[1]
          : undefined;
      if (name !== undefined) return `Your name is ${name}.`;
    }
  }
  return undefined;
}
