/** Writes a text completions request. */
import { unsupportedContent } from '../../sdk/errors.ts';
import type { ChatRequest, ChatSettings, Message } from '../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { writeSettings } from '../_shared/settings.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { isListed, promptOf, type Prompt } from './parts.ts';
import { rows } from './settings.ts';
import { completionsPath, formatName, own } from './wire.ts';
import { refuseContent } from '../_shared/refuse.ts';
import { dropBeside } from '../_openai/scope.ts';
import { writeStop } from '../_openai/settings.ts';
import { writeStream } from '../_openai/stream.ts';
import { putBack } from '../_shared/extra.ts';
import { setOf } from '../_shared/fields.ts';

const handled = setOf('stop');

/**
 * Returns a neutral request in this format. It has room for one user turn of text: anything richer is 400, or dropped and reported where
 * the operator chose that.
 */
export function encodeRequest(request: ChatRequest, target: EncodeTarget): EncodedRequest {
  const body: MutableObject = { model: target.model, prompt: writePrompt(request, target) };
  refuseTools(request, target);
  writeSettings(meant(request.settings), rows, body, {
    refuses: target.traits.refuses,
    ranges: target.traits.ranges,
    handled,
    drop: target.drop,
  });
  writeStop(request.settings, own(request.extra), body, { target, foreign: request.format !== formatName });
  const { $kept, ...rest } = own(request.extra);
  Object.assign(body, $kept);
  putBack(body, rest, ['stream_options']);
  reportForeign(request.extra, formatName, '', target.drop);
  writeStream(request, rest, body, target, formatName);
  return { path: completionsPath, body };
}

/** Returns the settings without those that request the only behaviour of this format: text, and no reasoning. */
function meant(settings: ChatSettings): ChatSettings {
  const { responseFormat, modalities, reasoning, parallelTools: _, ...rest } = settings;
  return {
    ...rest,
    ...(responseFormat === undefined || responseFormat.type === 'text' ? {} : { responseFormat }),
    ...(modalities?.every((modality) => modality === 'text') === false ? { modalities } : {}),
    ...(reasoning === undefined || reasoning.effort === 'none' || reasoning.mode === 'off'
      ? {}
      : { reasoning }),
  };
}

function writePrompt(request: ChatRequest, target: EncodeTarget): JsonObject[string] {
  const turn = request.messages.at(-1);
  for (const message of request.system) {
    // Content that is not from the client is the operator's system prompt, which a text completion cannot carry.
    if (message.at === undefined) target.drop('systemPrompt');
    else refuseContent(message, 'a system message', formatName, target);
  }
  for (const message of request.messages.slice(0, -1))
    refuseContent(message, 'a conversation of several turns', formatName, target);
  if (turn === undefined || turn.role !== 'user')
    throw unsupportedContent(
      turn?.at ?? 'messages',
      'a conversation that does not end with a user turn',
      formatName,
    );
  const prompts = promptsOf(turn, target);
  if (isListed(turn, request.format)) return prompts;
  const [only] = prompts;
  if (only !== undefined && prompts.length === 1) return only;
  if (prompts.length === 0 || prompts.some((prompt) => typeof prompt !== 'string'))
    throw unsupportedContent(turn.at ?? 'messages', 'a turn without text', formatName);
  return prompts.join('\n\n');
}

function promptsOf(turn: Message, target: EncodeTarget): readonly Prompt[] {
  dropBeside(turn, { format: formatName, target });
  const prompts: Prompt[] = [];
  for (const block of turn.content) {
    const prompt = promptOf(block);
    if (prompt === undefined) refuseContent(block, 'anything but text', formatName, target);
    else {
      prompts.push(prompt);
      dropBeside(block, { format: formatName, target });
    }
  }
  return prompts;
}

/** Tools that must not be called may be left out; others are what the answer depends on. */
function refuseTools({ tools, toolChoice }: ChatRequest, target: EncodeTarget): void {
  for (const tool of tools) {
    const at = tool.at ?? 'tools';
    refuseContent({ at, spare: toolChoice?.type === 'none' }, 'a tool', formatName, target);
  }
}
