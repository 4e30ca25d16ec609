import { createHash } from 'node:crypto';
import type { GatewayEvent } from 'sluice';
import type { ImageInput, ImageRequest } from 'sluice/channel-kit';
import { stripes, type Colour } from './png.ts';
import type { DemoOperation } from './demo-operation.ts';

/** Maximum side length of an image, whatever is requested. */
const longest = 2048;

/** Generates striped PNGs in base64, with colours that depend on the prompt. A stream has the requested number of partial images of each. */
export const images: DemoOperation<ImageRequest> = {
  speaks: ['images'],
  text: ({ prompt }) => prompt,
  answer(request, switches) {
    const { operation, prompt, images: given, mask, count = 1, stream, partials = 0 } = request;
    const [width, height] = sidesOf(request.size);
    const seed = [operation, prompt, ...given.map(named), mask === undefined ? '' : named(mask)].join('\n');
    const facts = {
      size: `${width}x${height}`,
      quality: request.quality ?? 'auto',
      background: 'opaque',
      fileFormat: 'png',
    };
    const tokens = {
      inputText: Math.ceil(Buffer.byteLength(prompt) / 4),
      inputImage: given.length * 100,
      outputText: 0,
      outputImage: count * 200,
    };
    const events: GatewayEvent[] = [];
    const made = Array.from({ length: count }, (_, index) => {
      const base64 = picture(`${seed}\n${index}`, width, height);
      // Sketches are smaller than their image.
      const sketches = stream ? partials : 0;
      const sketch = sketches > 0 ? picture(`${seed}\n${index}`, width >> 2, height >> 2) : '';
      for (let at = 0; at < sketches; at += 1)
        events.push({
          type: 'partial-image',
          data: sketch,
          index: at,
          extra: {
            images: {
              size: facts.size,
              quality: facts.quality,
              background: facts.background,
              output_format: facts.fileFormat,
            },
          },
        });
      const image = { base64, revisedPrompt: `The demo's idea of: ${prompt}` };
      if (stream) events.push({ type: 'result', value: { images: [image], ...facts, tokens } });
      return image;
    });
    const usage: GatewayEvent = {
      type: 'usage',
      usage: {
        input: tokens.inputText + tokens.inputImage,
        output: tokens.outputImage,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        units: { images: count },
      },
    };
    const usageEvents = switches['no-usage'] === true ? [] : [usage];
    if (!stream) return [{ type: 'result', value: { images: made, ...facts, tokens } }, ...usageEvents];
    return [...events, ...usageEvents];
  },
};

function picture(seed: string, width: number, height: number): string {
  const hash = createHash('sha256').update(seed).digest();
  const colour = (at: number): Colour => [hash[at] ?? 0, hash[at + 1] ?? 0, hash[at + 2] ?? 0];
  return stripes(Math.max(1, width), Math.max(1, height), [colour(0), colour(3)]).toString('base64');
}

/** Returns width and height. Default: 1024 each. */
function sidesOf(size = ''): readonly [number, number] {
  const [width = 0, height = 0] = /^(\d{1,5})x(\d{1,5})$/.exec(size)?.slice(1).map(Number) ?? [];
  if (width === 0 || height === 0) return [1024, 1024];
  return [Math.min(width, longest), Math.min(height, longest)];
}

/** Returns the identity of an input image, because the demo does not look at bytes. */
function named(image: ImageInput): string {
  switch (image.kind) {
    case 'upload':
      return `${image.upload.size} ${image.upload.head.toString('hex')}`;
    case 'url':
      return image.url;
    case 'data':
      return image.data.slice(0, 100);
    case 'file':
      return image.id;
  }
}
