/** Encodes function calls, media and the response id of a generateContent reply. */
import { randomBytes } from 'node:crypto';
import { argumentsObject } from '../../../json/arguments.ts';
import { officialType, sniffBase64 } from '../../_shared/data-url.ts';
import type { EventOf } from '../../_shared/floor.ts';
import type { MutableObject } from '../../../model/json.ts';
import { formatName, own } from '../wire.ts';
import { writeSignature } from '../reasoning.ts';

/** Returns the response id without the prefix of another format. */
export function responseId(id: string): string {
  const plain = id.replace(/^(?:chatcmpl-|cmpl-|gen-|msg_|resp_)/, '');
  return plain === '' ? randomBytes(16).toString('base64url') : plain;
}

/** Encodes a call as one part. `input` is the text of all its deltas. */
export function callPart(start: EventOf<'tool-start'>, input: string): MutableObject {
  const fields = own(start.extra);
  const call: MutableObject = {};
  if (typeof fields.$id === 'string') call.id = fields.$id;
  else if (fields.$noId !== true) call.id = start.id;
  call.name = start.name;
  if (input !== '' || fields.$noArgs !== true)
    call.args = start.custom === true ? { input } : argumentsObject(input);
  return {
    functionCall: call,
    ...(start.proof === undefined ? {} : { thoughtSignature: writeSignature(start.proof) }),
  };
}

const usualTypes = {
  image: 'image/png',
  audio: 'audio/wav',
  video: 'video/mp4',
  file: 'application/octet-stream',
} as const;

/** Encodes media as one part; undefined when there is no data. */
export function mediaPart(
  start: EventOf<'media-start'>,
  data: string,
  url: string | undefined,
): MutableObject | undefined {
  if (url !== undefined && data === '') {
    return {
      fileData: { ...(start.mimeType === undefined ? {} : { mimeType: start.mimeType }), fileUri: url },
    };
  }
  if (data === '' && start.extra?.[formatName] === undefined) return undefined;
  const mimeType = start.mimeType ?? sniffBase64(data) ?? usualTypes[start.media];
  return { inlineData: { mimeType: officialType(mimeType), data } };
}
