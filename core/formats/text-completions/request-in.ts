/** Reads a client's text completions request. */
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { peek } from '../_shared/check.ts';
import { readSettings } from '../_shared/settings.ts';
import { keepStream } from '../_openai/stream.ts';
import { promptMessage } from './parts.ts';
import { rows } from './settings.ts';
import { formatName, leftovers } from './wire.ts';

const bodyFields: ReadonlySet<string> = new Set([
  'model',
  'prompt',
  'stream',
  'stream_options',
  ...rows.map((row) => row.path),
]);

/**
 * Decodes a client's request to one user turn with the prompt. Throws 400 with the client's path. Several prompts are several blocks of
 * that turn; for channels without lists of prompts, each is sent as a request of its own.
 */
export function decodeRequest(body: JsonObject): ChatRequest {
  const { model, stream } = peek(body);
  const settings = readSettings(body, rows);
  const harmless = Object.keys(body).filter((key) => isHarmless(key, body[key]));
  const known = harmless.length === 0 ? bodyFields : new Set([...bodyFields, ...harmless]);
  const left = leftovers().take(body, known);
  if (harmless.length > 0) left.mark('$kept', body, harmless);
  if (typeof body.stop === 'string') left.put('$stop', 'string');
  keepStream(body, left);
  return {
    operation: 'chat',
    format: formatName,
    model,
    stream,
    system: [],
    messages: [promptMessage(body.prompt)],
    tools: [],
    settings,
    ...left.extra(),
  };
}

/** Returns true for fields that the encoder of the response handles, or that have no effect. They are not reported as dropped. */
function isHarmless(key: string, value: unknown): boolean {
  if (key === 'echo') return true;
  return (key === 'best_of' && value === 1) || (key === 'suffix' && value === '');
}
