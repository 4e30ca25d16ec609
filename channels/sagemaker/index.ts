/** Amazon SageMaker: real-time endpoints whose containers speak chat completions. */
import { z } from 'zod';
import { defineChannel, type UpstreamRequest, type ChannelParts, type ChannelTools } from 'sluice';
import { editMembers } from 'sluice/channel-kit';
import { awsEndpoint, regionOptions, accessesOf, regionsOf } from '../_kit/identity/aws-regions.ts';
import { awsHeaders } from '../_kit/identity/aws-signature.ts';
import { ordinaryHeaders } from '../_kit/http/http-channel.ts';
import { containerAnswer } from './answers.ts';

const options = z.object({
  ...regionOptions,
  servedModel: z
    .string()
    .min(1)
    .optional()
    .describe(
      'name of the model in the container. Default: requests name no model, and the container uses its own',
    ),
});

/**
 * Amazon SageMaker: real-time endpoints whose containers (DJL LMI, vLLM, TGI, and what JumpStart deploys with them) speak chat completions.
 * A model is the name of an endpoint, or `ENDPOINT/COMPONENT` for one of its inference components.
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html
 * https://docs.djl.ai/master/docs/serving/serving/docs/lmi/user_guides/chat_input_output_schema.html
 */
export default defineChannel({
  name: 'sagemaker',
  needsKey: false,
  // Instances are paid by the hour.
  prices: { '*': { input: 0, output: 0 } },
  options,
  setup(chosen, tools: ChannelTools): ChannelParts {
    const accesses = accessesOf(chosen, tools, 'sagemaker');
    if (accesses.some(({ apiKey }) => apiKey !== undefined))
      throw new Error('a key is ACCESS|SECRET or ACCESS|SECRET|SESSION: SageMaker has no API keys.');
    return {
      speaks: { chat: ['chat-completions'] },
      ...regionsOf(chosen, accesses),
      traits: () => ({
        reasoning: 'none',
        outputLimitField: 'max_tokens',
        systemRole: 'system',
        refuses: ['customTools'],
        // DJL LMI, docs/lmi/user_guides/chat_input_output_schema.md: `finish_reason` of a choice.
        finishReasons: { eos_token: 'stop', stop_sequence: 'stop' },
      }),
      async open(call, request) {
        const access = accesses[call.target?.key.index ?? 0] ?? accesses[0];
        if (access?.credentials === undefined) throw new Error('The channel has no region for this request.');
        const { region } = access;
        const { path, headers, body } = invocation(request, chosen.servedModel);
        const base = (chosen.baseUrl ?? awsEndpoint('runtime.sagemaker', region)).replace(/\/+$/, '');
        const url = new URL(base + path);
        const proof = await awsHeaders({ method: 'POST', url, headers, body }, await access.credentials(), {
          service: 'sagemaker',
          region,
        });
        const answer = await tools.http.send(call, {
          url: url.href,
          method: 'POST',
          headers: { ...ordinaryHeaders({ stream: false }), accept: '*/*', ...headers, ...proof },
          body,
        });
        if (answer.status === 401 || answer.status === 403) access.forget();
        access.logRefusal?.(answer);
        return containerAnswer(answer);
      },
    };
  },
});

/** Returns the request as InvokeEndpoint has it: the body is the container's own. */
function invocation(
  { model, stream, body }: UpstreamRequest,
  servedModel: string | undefined,
): {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
} {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) throw new Error('Endpoints do not accept forms.');
  const [endpoint = '', component] = model.split('/', 2);
  return {
    path: `/endpoints/${encodeURIComponent(endpoint)}/invocations${stream ? '-response-stream' : ''}`,
    headers: {
      'content-type': 'application/json',
      ...(component === undefined ? {} : { 'x-amzn-sagemaker-inference-component': component }),
    },
    body: editMembers(body, { model: servedModel }),
  };
}
