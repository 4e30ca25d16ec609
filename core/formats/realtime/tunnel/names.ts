import { GatewayError } from '../../../sdk/errors.ts';
import { parseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import type { SocketMessage } from '../../../model/realtime.ts';
import type { TunnelNames } from '../../../sdk/format.ts';
import { leadingType } from '../wire.ts';

/** Client messages that can name a model, and where: the member that holds it. */
const naming: ReadonlyMap<string, 'session' | 'response'> = new Map([
  ['session.update', 'session'],
  ['transcription_session.update', 'session'],
  ['response.create', 'response'],
]);

/** Provider messages that tell the session with its model. */
const telling: ReadonlySet<string> = new Set(['session.created', 'session.updated']);

/** Returns false for a message that cannot name a model, as sound never does. An escape could spell the name of the member too. */
function mayName(data: Buffer): boolean {
  return data.includes('"model"') || data.includes('\\u');
}

/** Keeps a session on the model it was opened with, under the name that each side knows. Only messages that may name a model are parsed. */
export function namesOf(client: string, provider: string): TunnelNames {
  return {
    toProvider(message) {
      const { data, binary, close } = message;
      if (binary || close !== undefined || !mayName(data)) return message;
      const event = parseObject(data.toString());
      const member = typeof event?.type === 'string' ? naming.get(event.type) : undefined;
      const holder = member === undefined ? undefined : event?.[member];
      if (event === undefined || member === undefined || !isObject(holder)) return message;
      if (typeof holder.model === 'string' && holder.model !== client && holder.model !== provider)
        return refusal(member, client, event.event_id);
      const changed = renamed(holder, client, provider);
      return changed === holder ? message : text({ ...event, [member]: changed });
    },
    toClient(message) {
      const { data, binary, close } = message;
      if (client === provider || binary || close !== undefined) return message;
      const type = leadingType(data);
      if (type !== undefined && !telling.has(type)) return message;
      if (!data.includes('"model"')) return message;
      const event = parseObject(data.toString());
      if (typeof event?.type !== 'string' || !telling.has(event.type)) return message;
      const { session } = event;
      if (!isObject(session) || session.model !== provider) return message;
      return text({ ...event, session: { ...session, model: client } });
    },
  };
}

/** Returns the session or answer with the provider's name, also where a transcription names the same model. The same object when nothing changes. */
function renamed(holder: JsonObject, client: string, provider: string): JsonObject {
  if (client === provider) return holder;
  let changed = holder;
  if (holder.model === client) changed = { ...changed, model: provider };
  const { audio, input_audio_transcription: older } = changed;
  if (isObject(older) && older.model === client)
    changed = { ...changed, input_audio_transcription: { ...older, model: provider } };
  const input = isObject(audio) && isObject(audio.input) ? audio.input : undefined;
  if (isObject(audio) && isObject(input?.transcription) && input.transcription.model === client) {
    const transcription = { ...input.transcription, model: provider };
    changed = { ...changed, audio: { ...audio, input: { ...input, transcription } } };
  }
  return changed;
}

function refusal(member: string, client: string, eventId: unknown): GatewayError {
  return new GatewayError(
    'invalid_value',
    `The model of a session cannot be changed: this one was opened with "${client}". Open a new one.`,
    {
      param: `${member}.model`,
      ...(typeof eventId === 'string' ? { details: { event_id: eventId.slice(0, 512) } } : {}),
    },
  );
}

function text(event: JsonObject): SocketMessage {
  return { data: Buffer.from(JSON.stringify(event)), binary: false };
}
