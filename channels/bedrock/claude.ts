/** Translates requests of the messages format into calls of Bedrock's InvokeModel, and finds the Claude model in a model id of Bedrock. */
import { GatewayError, parseObject, type UpstreamRequest } from 'sluice';
import { editMembers } from 'sluice/channel-kit';

/** The version that a body names; there is no other. */
const version = 'bedrock-2023-05-31';

/**
 * Returns the body and the method of InvokeModel. The model stands in the path, streaming is another method, and the version and beta flags
 * are members of the body.
 */
export function invocation({ body, headers, stream }: UpstreamRequest): {
  readonly method: string;
  readonly body: Buffer | string;
} {
  const json = typeof body === 'string' || Buffer.isBuffer(body) ? body : '';
  const parsed = parseObject(json.toString());
  if (parsed === undefined)
    throw new GatewayError('invalid_json', 'The request for this channel is not a JSON object.');
  const betas = [
    ...(Array.isArray(parsed.anthropic_beta) ? (parsed.anthropic_beta as readonly string[]) : []),
    ...(headers['anthropic-beta'] ?? '')
      .split(',')
      .map((flag) => flag.trim())
      .filter((flag) => flag !== ''),
  ];
  return {
    method: stream ? 'invoke-with-response-stream' : 'invoke',
    body: editMembers(json, {
      model: undefined,
      stream: undefined,
      anthropic_version: parsed.anthropic_version ?? version,
      ...(betas.length === 0 ? {} : { anthropic_beta: [...new Set(betas)] }),
    }),
  };
}

/** Returns the Claude model that a name of Bedrock's means, whatever region or version stands around it; undefined for any other. */
export function claudeIn(model: string): string | undefined {
  return /(?:^|[./])anthropic\.(claude-[\w.-]+?)(?:-v\d+(?::\d+)*(?::\d+k)?)?$/.exec(model)?.[1];
}
