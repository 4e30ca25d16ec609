/** Usage of images: number, quality and size of images, and tokens where the provider reports them. */
import type { ImageTokens } from '../../model/image.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import { imageUnits } from '../_shared/image-units.ts';
import { noUsage, readTokenUsage } from '../_shared/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';
import { formatName } from './wire.ts';

/** Returns the usage of a number of images: tokens where the provider reports them, and quality and size where the reply states both. */
export function readUsage(
  usage: JsonObject | undefined,
  images: number,
  { quality, size }: JsonObject,
): Usage {
  const isKnown = typeof quality === 'string' && typeof size === 'string';
  return {
    ...(usage === undefined ? noUsage : readTokenUsage(usage, formatName)),
    units: isKnown ? imageUnits(images, quality, size) : { images },
  };
}

/** Returns the usage object for a client; undefined where no tokens are known. */
export function writeUsage(
  usage: Usage | undefined,
  tokens: ImageTokens | undefined,
): JsonObject | undefined {
  if (usage === undefined) return undefined;
  const { format, raw, input, output } = usage;
  if (format === formatName && raw !== undefined) return raw;
  if (input === 0 && output === 0) return undefined;
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...(tokens === undefined
      ? {}
      : {
          input_tokens_details: { text_tokens: tokens.inputText, image_tokens: tokens.inputImage },
          output_tokens_details: { text_tokens: tokens.outputText, image_tokens: tokens.outputImage },
        }),
  };
}

/** Reads usage of a reply or a stream that passes through. In a stream each image has its own usage. */
export function usageTap(): UsageTap {
  let total: Usage | undefined;
  return {
    read(data) {
      const body = parseObject(data);
      const usage = isObject(body?.usage) ? body.usage : undefined;
      if (typeof body?.type === 'string' && body.type.endsWith('.completed')) {
        const own = readUsage(usage, 1, body);
        total = total === undefined ? own : sumUsage(total, own);
        return total;
      }
      if (usage === undefined) return undefined;
      return Array.isArray(body?.data)
        ? readUsage(usage, body.data.length, body)
        : readTokenUsage(usage, formatName);
    },
  };
}
