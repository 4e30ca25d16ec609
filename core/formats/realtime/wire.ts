/** The format's name. */
export const formatName = 'realtime';

/** Where sessions are opened, for clients and below a provider's base URL. */
export const clientPath = '/v1/realtime';
export const providerPath = '/realtime';

/** The subprotocol that is selected when a client offers it. Others that it offers say who it is, or which dialect it speaks. */
export const subprotocol = 'realtime';

/** The header, and the subprotocol in its place, by which a client asks for the dialect of before general availability. */
export const betaHeader = 'openai-beta';
export const betaValue = 'realtime=v1';
export const betaProtocol = 'openai-beta.realtime-v1';

const leading = 256;
const typeFirst = /^\s*\{\s*(?:"event_id"\s*:\s*"[^"\\]*"\s*,\s*)?"type"\s*:\s*"([^"\\]*)"/;

/**
 * The type of a message where it stands at the beginning, as everybody writes it; undefined where it must be looked for. Reads a few bytes
 * of what may be minutes of audio.
 */
export function leadingType(data: Buffer): string | undefined {
  return typeFirst.exec(data.toString('latin1', 0, Math.min(leading, data.length)))?.[1];
}
