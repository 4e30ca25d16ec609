import { GatewayError } from '../../../sdk/errors.ts';
import type { GatewayEvent } from '../../../model/event.ts';
import type { ImageTokens, GeneratedImage } from '../../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { throwIfError, unusableResponse } from '../../_shared/upstream-error/index.ts';
import { redact } from '../../_shared/redact.ts';
import { noUsage, tokenCount } from '../../_shared/usage.ts';
import { readUsage } from '../usage.ts';
import { formatName, official } from '../wire.ts';
import { objectsOf, defined, setOf } from '../../_shared/fields.ts';

/** Returns a provider's reply as events: contents with pictures in them, or predictions. */
export function readImages(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { images, text, refused } = Array.isArray(body.predictions) ? inPredictions(body) : inContents(body);
  const [first] = images;
  if (first === undefined) throw nothing(refused, text);
  const metadata = isObject(body.usageMetadata) ? body.usageMetadata : undefined;
  const used = metadata === undefined ? noUsage : readUsage(metadata);
  const tokens = metadata === undefined ? undefined : readTokens(metadata);
  const fileFormat = /^image\/(\w+)$/.exec(first.mimeType ?? '')?.[1];
  return [
    { type: 'usage', usage: { ...used, units: { images: images.length } } },
    {
      type: 'result',
      value: {
        images,
        ...defined({ fileFormat, tokens }),
        ...(text === '' ? {} : { extra: { [formatName]: { text } } }),
      },
    },
  ];
}

/** Content of a response. `refused`: reason for a missing image. */
interface Found {
  readonly images: readonly GeneratedImage[];
  readonly text: string;
  readonly refused: string | undefined;
}

function inPredictions({ predictions }: JsonObject): Found {
  const images: GeneratedImage[] = [];
  let refused: string | undefined;
  for (const prediction of objectsOf(predictions)) {
    const { bytesBase64Encoded: base64, mimeType, prompt, raiFilteredReason: reason } = prediction;
    if (typeof reason === 'string') refused = reason;
    if (typeof base64 !== 'string') continue;
    images.push({
      base64,
      ...(typeof mimeType === 'string' ? { mimeType } : {}),
      ...(typeof prompt === 'string' ? { revisedPrompt: prompt } : {}),
    });
  }
  return { images, text: '', refused };
}

/** Finish reasons that do not explain a missing image. */
const ordinary = setOf('STOP MAX_TOKENS NO_IMAGE OTHER FINISH_REASON_UNSPECIFIED');

function inContents({ candidates, promptFeedback }: JsonObject): Found {
  const images: GeneratedImage[] = [];
  let text = '';
  let refused: string | undefined;
  for (const candidate of objectsOf(candidates)) {
    const { content, finishReason, finishMessage } = candidate;
    if (typeof finishReason === 'string' && !ordinary.has(finishReason))
      refused = typeof finishMessage === 'string' ? finishMessage : finishReason;
    for (const part of objectsOf(isObject(content) ? content.parts : undefined)) {
      const { inlineData, text: words, thought } = official(part, 'part');
      // Drafts that the model thought about.
      if (thought === true) continue;
      if (typeof words === 'string') text += words;
      if (!isObject(inlineData)) continue;
      const { data, mimeType } = official(inlineData, 'inlineData');
      if (typeof data !== 'string' || (typeof mimeType === 'string' && !mimeType.startsWith('image/')))
        continue;
      images.push({ base64: data, ...(typeof mimeType === 'string' ? { mimeType } : {}) });
    }
  }
  if (isObject(promptFeedback) && typeof promptFeedback.blockReason === 'string')
    refused = promptFeedback.blockReason;
  return { images, text: text.trim(), refused };
}

/** Returns the error for a response without an image: it was refused, or the model only wrote text. */
function nothing(refused: string | undefined, text: string): GatewayError {
  if (refused !== undefined) {
    const message = `The upstream returned no image: ${redact(refused).slice(0, 500)}`;
    return new GatewayError('content_policy_violation', message, { origin: 'upstream', retryable: false });
  }
  const words = text === '' ? '' : `: ${redact(text).slice(0, 500)}`;
  return unusableResponse(`gave no image${words}`);
}

/** Returns the token counts. Tokens without the modality of images count as text. */
function readTokens(usage: JsonObject): ImageTokens {
  const { input, output } = readUsage(usage);
  const inputImage = Math.min(input, imagesIn(usage.promptTokensDetails));
  const outputImage = Math.min(output, imagesIn(usage.candidatesTokensDetails));
  return { inputText: input - inputImage, inputImage, outputText: output - outputImage, outputImage };
}

function imagesIn(details: JsonValue | undefined): number {
  let count = 0;
  for (const one of objectsOf(details)) if (one.modality === 'IMAGE') count += tokenCount(one.tokenCount);
  return count;
}
