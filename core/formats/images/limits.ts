import { GatewayError, wrongValue } from '../../sdk/errors.ts';
import type { Upload } from '../../model/form.ts';
import type { ImageInput, ImageRequest } from '../../model/image.ts';
import { mediaKind } from '../../model/media-kind.ts';
import type { ImageTraits, ModelTraits } from '../../model/traits.ts';

/**
 * Throws 400 with the name of the field that the model does not support with this value. Fields without a trait are left to the provider.
 */
export function checkLimits(request: ImageRequest, { images: limits }: ModelTraits): void {
  if (limits === undefined) return;
  const { prompt, count, size, quality, style, images, mask } = request;
  const { promptLength, most } = limits;
  if (promptLength !== undefined && isLonger(prompt, promptLength))
    throw wrongValue('prompt', `at most ${promptLength} characters long for this model`);
  if (most !== undefined && count !== undefined && count > most)
    throw wrongValue('n', most === 1 ? '1 for this model' : `at most ${most} for this model`);
  oneOf('size', size, limits.sizes);
  oneOf('quality', quality, limits.qualities);
  oneOf('style', style, limits.styles);
  if (limits.source !== undefined) checkSources(images, mask, limits.source);
}

/** Characters as people count them; a text far beyond the limit is not taken apart for that. */
function isLonger(text: string, most: number): boolean {
  return text.length > most && (text.length > most * 2 || [...text].length > most);
}

function oneOf(field: string, value: string | undefined, known: readonly string[] | undefined): void {
  if (value === undefined || known === undefined || known.includes(value)) return;
  if (known.length === 0)
    throw new GatewayError('unsupported_parameter', `${field} is not supported by this model.`, {
      param: field,
    });
  throw wrongValue(field, `${known.join(', ')} for this model`.replace(/, ([^,]+)$/, ' or $1'));
}

type Rule = NonNullable<ImageTraits['source']>;

function checkSources(images: readonly ImageInput[], mask: ImageInput | undefined, rule: Rule): void {
  const [first, another] = images;
  if (another !== undefined) throw wrongValue('image', 'one file for this model');
  if (first?.kind !== 'upload') return;
  const size = checkFile(first.upload, 'image', rule);
  if (size !== undefined && size[0] !== size[1]) {
    throw wrongValue('image', `square for this model: it is ${size[0]} pixels wide and ${size[1]} high`);
  }
  if (mask?.kind !== 'upload') return;
  const other = checkFile(mask.upload, 'mask', rule);
  if (size !== undefined && other !== undefined && (size[0] !== other[0] || size[1] !== other[1]))
    throw wrongValue('mask', 'of the same size as image');
}

function checkFile(
  { head, size }: Upload,
  param: string,
  { mimeType, below }: Rule,
): readonly [number, number] | undefined {
  const kind = mediaKind(head);
  if (kind !== mimeType) {
    const sentence = `${param} must be ${mimeType} for this model. Its content is ${kind ?? 'of a kind that is not known'}.`;
    throw new GatewayError('invalid_value', sentence, { param });
  }
  if (size >= below) throw wrongValue(param, `smaller than ${below} bytes for this model`);
  return kind === 'image/png' ? pngSize(head, param) : undefined;
}

/** Returns the width and height, which stand in the first chunk of a PNG. */
function pngSize(head: Buffer, param: string): readonly [number, number] {
  if (head.length < 24 || head.toString('latin1', 12, 16) !== 'IHDR')
    throw new GatewayError('invalid_value', `${param} is a damaged PNG.`, { param });
  return [head.readUInt32BE(16), head.readUInt32BE(20)];
}
