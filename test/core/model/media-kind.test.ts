import { expect, test } from 'vitest';
import { mediaKind } from '../../../core/model/media-kind.ts';

const ebml = '\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82';

test.each([
  ['image/png', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
  ['image/jpeg', '\xff\xd8\xff\xe0\0\x10JFIF'],
  ['image/jpeg', '\xff\xd8\xff\xdb'],
  ['image/gif', 'GIF87a'],
  ['image/gif', 'GIF89a'],
  ['image/webp', 'RIFF\x24\0\0\0WEBPVP8 '],
  ['image/bmp', 'BM\x46\0\0\0\0\0\0\0\x36\0\0\0'],
  ['image/tiff', 'II*\0\x08\0\0\0'],
  ['image/tiff', 'MM\0*\0\0\0\x08'],
  ['image/heic', '\0\0\0\x18ftypheic\0\0\0\0mif1heic'],
  ['image/heic', '\0\0\0\x18ftypmif1\0\0\0\0mif1heic'],
  ['image/avif', '\0\0\0\x1cftypavif\0\0\0\0avifmif1'],
  ['image/avif', '\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf'],
  ['application/pdf', '%PDF-1.4\n'],
  ['application/zip', 'PK\x03\x04'],
  ['audio/wav', 'RIFF\x24\0\0\0WAVEfmt '],
  ['audio/mpeg', 'ID3\x04\0\0'],
  ['audio/mpeg', '\xff\xfb\x90\x64'],
  ['audio/mpeg', '\xff\xf3\x40\xc4'],
  ['audio/aac', '\xff\xf1\x50\x80'],
  ['audio/aac', '\xff\xf9\x50\x80'],
  ['audio/ogg', 'OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead'],
  ['video/ogg', 'OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x2a\x80theora'],
  ['audio/flac', 'fLaC\0\0\0\x22'],
  ['audio/aiff', 'FORM\0\0\0\0AIFF'],
  ['audio/amr', '#!AMR\n'],
  ['audio/mp4', '\0\0\0\x20ftypM4A \0\0\0\0'],
  ['video/mp4', '\0\0\0\x20ftypisom\0\0\x02\0'],
  ['video/mp4', '\0\0\0\x18ftypmp42\0\0\0\0'],
  ['video/quicktime', '\0\0\0\x14ftypqt  \0\0\0\0'],
  ['video/3gpp', '\0\0\0\x14ftyp3gp4\0\0\0\0'],
  ['video/webm', `${ebml}\x84webm`],
  ['video/x-matroska', `${ebml}\x88matroska`],
  ['video/x-msvideo', 'RIFF\x24\0\0\0AVI LIST'],
  ['video/mpeg', '\0\0\x01\xba\x44'],
  ['video/x-flv', 'FLV\x01\x05'],
])('a file that begins as %s is told apart: %j', (type, head) => {
  expect(mediaKind(Buffer.from(head, 'latin1'))).toBe(type);
});

test.each([
  '',
  '\0',
  '\x89PN',
  'hello',
  '<!doctype html>',
  '<svg/>',
  '{"a":1}',
  'RIFF\x24\0\0\0CDDA',
  'BMW is a car and no picture',
  'FORM without a sound',
  '\xff',
  '\xff\xfeh\0i\0',
  '\xff\xff\xff\xff',
  '\x7fELF',
  'MZ\x90\0',
  '#!/bin/sh\n',
])('%j is no medium', (head) => {
  expect(mediaKind(Buffer.from(head, 'latin1'))).toBeUndefined();
});
