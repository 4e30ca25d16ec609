/** Opens realtime sessions at xAI, and moves settings of OpenAI's Realtime API to where xAI expects them. */
import { map } from 'rxjs';
import {
  GatewayError,
  isObject,
  parseObject,
  type JsonObject,
  type JsonValue,
  type ChannelParts,
} from 'sluice';
import { type SocketMessage, leadingType } from 'sluice/channel-kit';
import { requireConversation } from '../_kit/http/realtime.ts';
import { XaiSessionWatch } from './session-watch.ts';

/**
 * Models that hold sessions. xAI accepts a handshake with any name and answers with a voice model, which costs otherwise.
 * github:OxyHQ/Kaana docs/realtime.md, probed 2026-09-30.
 */
const speaking = /^grok-voice-(?!tts|transcribe)/;

/** Adds sessions to a channel of xAI. */
export function withSessions({ connect, ...parts }: ChannelParts): ChannelParts {
  if (connect === undefined) return parts;
  return {
    ...parts,
    watch: (answers) => new XaiSessionWatch(answers),
    async connect(call, request) {
      requireConversation(call, request);
      if (!speaking.test(request.model))
        throw new GatewayError(
          'endpoint_not_supported',
          `The model ${call.askedModel} does not support sessions at xAI. Use a voice model, such as grok-voice-latest.`,
          { param: 'model' },
        );
      const input = call.input?.pipe(map(inWordsOfXai));
      return connect(input === undefined ? call : call.with({ input }), request);
    },
  };
}

/** Translates a message of a client. Only messages that may have settings are parsed. */
export function inWordsOfXai(message: SocketMessage): SocketMessage {
  const { data, binary, close } = message;
  if (binary || close !== undefined) return message;
  const type = leadingType(data);
  if (type !== undefined && type !== 'session.update' && type !== 'response.create') return message;
  const event = parseObject(data.toString());
  if (event === undefined) return message;
  const changed = changedEvent(event);
  return changed === undefined ? message : { data: Buffer.from(JSON.stringify(changed)), binary };
}

function changedEvent(event: JsonObject): JsonObject | undefined {
  const { type, session, response } = event;
  if (type === 'session.update' && isObject(session)) return { ...event, session: sessionForXai(session) };
  // https://docs.x.ai/voice-realtime.ws.json: `modalities` of a response, in place of `output_modalities`.
  if (type === 'response.create' && isObject(response) && response['output_modalities'] !== undefined) {
    const { output_modalities: modalities, ...rest } = response;
    return { ...event, response: { modalities, ...rest } };
  }
  return undefined;
}

/** Voice and turn detection stand in the session itself. livekit-plugins-xai 1.8.9, realtime/realtime_model.py, `_wrap_session_update`. */
function sessionForXai({ audio, ...session }: JsonObject): JsonObject {
  const found: Record<string, JsonValue> = {};
  const { input, output, ...others } = isObject(audio) ? audio : {};
  if (isObject(output) && output['voice'] !== undefined) found['voice'] = output['voice'];
  if (isObject(input) && input['turn_detection'] !== undefined)
    found['turn_detection'] = input['turn_detection'];
  const all = { ...found, ...session };
  const rest = {
    ...others,
    ...kept('input', input, 'turn_detection'),
    ...kept('output', output, 'voice'),
  };
  return {
    ...all,
    ...('turn_detection' in all ? { turn_detection: turnsForXai(all['turn_detection']) } : {}),
    ...(audio === undefined || (isObject(audio) && Object.keys(rest).length === 0) ? {} : { audio: rest }),
  };
}

/** Returns the member without the part that moves; nothing where no other part is left. */
function kept(name: string, value: JsonValue | undefined, moved: string): JsonObject {
  if (!isObject(value)) return value === undefined ? {} : { [name]: value };
  const { [moved]: _moved, ...rest } = value;
  return Object.keys(rest).length === 0 ? {} : { [name]: rest };
}

/**
 * `null` is `{"type": null}` there (https://docs.x.ai/voice-realtime.ws.json), and speech is only answered by itself where that is asked for:
 * LiteLLM 1.110.2, llms/xai/realtime/transformation.py, `_default_server_vad_create_response`.
 */
function turnsForXai(turns: JsonValue | undefined): JsonValue {
  if (!isObject(turns)) return { type: null };
  return turns['type'] === 'server_vad' ? { create_response: true, ...turns } : turns;
}
