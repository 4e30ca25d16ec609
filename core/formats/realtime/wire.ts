/**
 * Paths, headers and subprotocols of the realtime format, and functions that read the type and the audio length of a message without
 * parsing its JSON.
 */
import type { JsonValue } from '../../model/json.ts';

/** The format's name. */
export const formatName = 'realtime';

/** Paths of sessions, for clients and below a provider's base URL. */
export const clientPath = '/v1/realtime';
export const providerPath = '/realtime';

/** Paths of sessions that translate speech. */
export const translationClientPath = '/v1/realtime/translations';
export const translationProviderPath = '/realtime/translations';

/** Subprotocol that is selected when a client offers it. Other subprotocols that it offers carry its credentials or the API version. */
export const subprotocol = 'realtime';

/** Header, and the equivalent subprotocol, that request the beta version of the API. */
export const betaHeader = 'openai-beta';
export const betaValue = 'realtime=v1';
export const betaProtocol = 'openai-beta.realtime-v1';

const leading = 256;
const typeFirst = /^\s*\{\s*(?:"event_id"\s*:\s*"[^"\\]*"\s*,\s*)?"type"\s*:\s*"([^"\\]*)"/;

/**
 * Returns the type of a message where it stands at the beginning, as everybody writes it; undefined where it must be looked for. Reads a few bytes
 * of what may be minutes of audio.
 *
 * @example
 * const isAudio = leadingType(message.data) === 'input_audio_buffer.append';
 */
export function leadingType(data: Buffer): string | undefined {
  return typeFirst.exec(data.toString('latin1', 0, Math.min(leading, data.length)))?.[1];
}

/**
 * Returns the number of bytes of audio that a member in base64 holds.
 *
 * @example
 * const seconds = audioLength(event.delta) / bytesPerSecond;
 */
export function audioLength(audio: JsonValue | undefined): number {
  return typeof audio === 'string' ? (audio.length * 3) / 4 : 0;
}

/**
 * Returns the number of bytes of audio in a message that appends some. All that stands behind the beginning of its text counts, so that no other
 * member can hide audio.
 *
 * @example
 * audio += appendedLength(message.data);
 */
export function appendedLength(data: Buffer): number {
  const name = '"audio":';
  const start = data.indexOf(name);
  const open = start < 0 ? -1 : data.indexOf('"', start + name.length);
  return (Math.max(0, data.length - open - 1 - '"}'.length) * 3) / 4;
}
