/** Looks up the audio format and the voice of a speech request for providers with an API of their own. */
import { GatewayError, wrongValue } from 'sluice';
import type { SpeakRequest } from 'sluice/channel-kit';

/** Returns the table's value for the requested file format. Throws 400 if there is none, because the client might not play another format. */
export function soundFor<Value>({ fileFormat }: SpeakRequest, table: Readonly<Record<string, Value>>): Value {
  const found = Object.hasOwn(table, fileFormat) ? table[fileFormat] : undefined;
  if (found !== undefined) return found;
  throw new GatewayError(
    'unsupported_value',
    `This model does not give speech as ${fileFormat.slice(0, 40)}: use ${Object.keys(table)
      .join(', ')
      .replace(/, ([^,]+)$/, ' or $1')}.`,
    { param: 'response_format' },
  );
}

/** Returns the provider's name of a voice. Throws 400 for an unknown voice. */
export function voiceName({ voice }: SpeakRequest): string {
  const name = (typeof voice === 'string' ? voice : voice.id).trim();
  // May become a segment of a path, where these would lead elsewhere.
  if (/^\.*$/.test(name)) throw wrongValue('voice', 'the name of a voice');
  return name;
}
