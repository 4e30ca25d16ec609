/** Decodes and encodes replies of the OCR format, and reads its usage in pages. */
import type { GatewayEvent } from '../../model/event.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { OcrResult } from '../../model/ocr.ts';
import type { Usage } from '../../model/usage.ts';
import type { ReplyContext, UsageTap, WholeEncoder } from '../../sdk/format.ts';
import { extraOf } from '../_shared/spelling.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';
import { noUsage } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Reads a provider's reply: `OCRResponse` of @mistralai/mistralai 2.7.0, models/components/ocrresponse. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { pages, model: _, usage_info: usage, ...rest } = body;
  if (!Array.isArray(pages) || !(pages as readonly JsonValue[]).every(isObject))
    throw unusableResponse('sent JSON without pages');
  const result: OcrResult = { pages: pages as readonly JsonObject[], ...extraOf(formatName, rest) };
  return [
    { type: 'result', value: result },
    { type: 'usage', usage: readUsage(isObject(usage) ? usage : { pages_processed: pages.length }) },
  ];
}

/** Reads the number of pages, and of annotated pages where the provider reports them. */
function readUsage(usage: JsonObject): Usage {
  const annotated = countIn(usage['pages_processed_annotation']);
  return {
    ...noUsage,
    units: {
      pages: countIn(usage['pages_processed']) ?? 0,
      ...(annotated === undefined ? {} : { annotatedPages: annotated }),
    },
    format: formatName,
    raw: usage,
  };
}

function countIn(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Writes a reply for a client. */
export function encodeWhole({ model }: ReplyContext): WholeEncoder {
  let result: OcrResult | undefined;
  let usage: Usage | undefined;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as OcrResult;
      if (event.type === 'usage') usage = event.usage;
    },
    end() {
      if (result === undefined) throw unusableResponse('gave no pages');
      const own = usage?.format === formatName ? usage.raw : undefined;
      return {
        pages: result.pages,
        model,
        ...result.extra?.[formatName],
        usage_info: own ?? { pages_processed: usage?.units?.pages ?? result.pages.length },
      };
    },
  };
}

/** Reads usage of a reply that passes through. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const usage = parseObject(data)?.['usage_info'];
      return isObject(usage) ? readUsage(usage) : undefined;
    },
  };
}
