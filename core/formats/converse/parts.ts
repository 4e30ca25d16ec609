/** Table of the media types that Converse accepts, and their conversion to the `format` of images, documents, video and audio. */
import type { MediaBlock } from '../../model/chat.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Key of a medium in a content block, with the MIME types of its formats. If several formats have one type, the first is encoded. */
export interface MediaKind {
  readonly key: 'image' | 'document' | 'video' | 'audio';
  /** The neutral name. */
  readonly type: MediaBlock['type'];
  readonly types: Readonly<Record<string, string>>;
}

const office = 'application/vnd.openxmlformats-officedocument';

/** Every medium of the format, with all of its formats. */
export const mediaKinds: Readonly<Record<MediaBlock['type'], MediaKind>> = {
  image: {
    key: 'image',
    type: 'image',
    types: { png: 'image/png', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' },
  },
  file: {
    key: 'document',
    type: 'file',
    types: {
      pdf: 'application/pdf',
      csv: 'text/csv',
      doc: 'application/msword',
      docx: `${office}.wordprocessingml.document`,
      xls: 'application/vnd.ms-excel',
      xlsx: `${office}.spreadsheetml.sheet`,
      html: 'text/html',
      txt: 'text/plain',
      md: 'text/markdown',
    },
  },
  video: {
    key: 'video',
    type: 'video',
    types: {
      mp4: 'video/mp4',
      mov: 'video/quicktime',
      mkv: 'video/x-matroska',
      webm: 'video/webm',
      flv: 'video/x-flv',
      mpeg: 'video/mpeg',
      mpg: 'video/mpeg',
      wmv: 'video/x-ms-wmv',
      three_gp: 'video/3gpp',
    },
  },
  audio: {
    key: 'audio',
    type: 'audio',
    types: {
      mp3: 'audio/mpeg',
      wav: 'audio/wav',
      flac: 'audio/flac',
      ogg: 'audio/ogg',
      opus: 'audio/opus',
      aac: 'audio/aac',
      m4a: 'audio/mp4',
      webm: 'audio/webm',
      pcm: 'audio/pcm',
    },
  },
};

const aliases = lookupTable<string>({
  'image/jpg': 'image/jpeg',
  'audio/mp3': 'audio/mpeg',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/x-m4a': 'audio/mp4',
});

/** Returns the type that a format's word stands for. */
export function mimeOf({ key, types }: MediaKind, format: string): string {
  return types[format] ?? `${key === 'document' ? 'application' : key}/${format}`;
}

/** Returns the format's word for a type; undefined for one that has none. Text of an unknown kind is text. */
export function formatOf({ key, types }: MediaKind, mimeType: string): string | undefined {
  const bare = (mimeType.split(';')[0] ?? '').trim().toLowerCase();
  const official = aliases[bare] ?? bare;
  const found = Object.keys(types).find((format) => types[format] === official);
  if (found !== undefined || key !== 'document') return found;
  return /^text\/|^application\/(?:json|xml)$/.test(official) ? 'txt' : undefined;
}
