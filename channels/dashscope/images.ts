/** Images of Qwen and Wan at DashScope's own API. */
import { isObject, type JsonObject, type ChannelParts } from 'sluice';
import {
  contentRefused,
  throwIfError,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type GeneratedImage,
} from 'sluice/channel-kit';
import { answerOf, requestWhole, pollUntilDone, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';
import { pictureAt, pictureCodecs, sidesFor } from '../_kit/media/pictures.ts';

const services = '/services/aigc';

/**
 * Returns the path of a model, and whether it creates a task. Qwen responds with the image: LiteLLM 1.110.2, llms/dashscope/image_generation/transformation.py.
 * Wan makes tasks: https://docs.qwencloud.com/api-reference/image-generation/wan-text-to-image-v2/create-task
 */
function endpointOf(model: string): {
  readonly path: string;
  readonly takesPrompt?: true;
  readonly isTask?: true;
} {
  if (!model.startsWith('wan')) return { path: `${services}/multimodal-generation/generation` };
  if (/^wan(?:x|2\.[0-5]-)/.test(model))
    return { path: `${services}/text2image/image-synthesis`, takesPrompt: true, isTask: true };
  return { path: `${services}/image-generation/generation`, isTask: true };
}

function encode(request: ImageRequest, { model, drop }: EncodeTarget, own: JsonObject): EncodedRequest {
  const { prompt } = request;
  const { path, takesPrompt, isTask } = endpointOf(model);
  const { negative_prompt: negative, ...parameters } = own;
  const sides = sidesFor(request, drop);
  return {
    path,
    ...(isTask === true ? { headers: { 'x-dashscope-async': 'enable' } } : {}),
    body: {
      model,
      input:
        takesPrompt === true
          ? { prompt, ...(negative === undefined ? {} : { negative_prompt: negative }) }
          : { messages: [{ role: 'user', content: [{ text: prompt }] }] },
      parameters: {
        ...parameters,
        ...(takesPrompt === true || negative === undefined ? {} : { negative_prompt: negative }),
        ...(sides === undefined ? {} : { size: `${sides.width}*${sides.height}` }),
        // Older Wan models create four images by default.
        n: 1,
      },
    },
  };
}

/** Images stand in `choices` of messages, or in the `results` of a task: dashscope 2.0.2, api_entities/dashscope_response.py */
function decode(body: JsonObject): readonly GeneratedImage[] {
  const { output } = body;
  if (!isObject(output)) throwIfError(body);
  const { choices, results, code, message } = isObject(output) ? output : {};
  if (code !== undefined) {
    // https://www.alibabacloud.com/help/en/model-studio/error-code
    if (code === 'DataInspectionFailed')
      throw contentRefused(typeof message === 'string' ? message : 'The image was refused.');
    throw unusableResponse('made no image');
  }
  const parts = (Array.isArray(choices) ? choices : []).flatMap((choice) => {
    const reply = isObject(choice) ? choice['message'] : undefined;
    const content = isObject(reply) ? reply['content'] : undefined;
    return Array.isArray(content) ? content : [];
  });
  return [...parts, ...(Array.isArray(results) ? results : [])].flatMap((part) => {
    const { image, url = image } = isObject(part) ? part : {};
    return typeof url === 'string' ? [pictureAt(url)] : [];
  });
}

/** Returns the codecs of images made from text. */
export const dashscopeImages = (format: string): NonNullable<ChannelParts['codecs']> =>
  pictureCodecs({
    format,
    changes: 0,
    own: ['negative_prompt', 'prompt_extend', 'watermark', 'seed'],
    encode,
    decode,
  });

function isRunning({ output }: JsonObject): boolean {
  const { task_status: status } = isObject(output) ? output : {};
  return status === 'PENDING' || status === 'RUNNING' || status === 'SUSPENDED';
}

/** Waits for images that are made by a task, as long as the call may last. */
export function awaitingImages(open: ChannelParts['open']): ChannelParts['open'] {
  return async (call, request) => {
    if (request.operation !== 'generate-image' || request.headers['x-dashscope-async'] === undefined)
      return open(call, request);
    const order = await requestWhole(call, open, request);
    if (!hasSucceeded(order)) return answerOf(order);
    const { output } = order.body;
    const id = isObject(output) ? output['task_id'] : undefined;
    if (typeof id !== 'string') return answerOf(order);
    const question = stepOf(request, { path: `/tasks/${encodeURIComponent(id)}` });
    return answerOf(await pollUntilDone(call, open, question, isRunning));
  };
}
